// Scores of many queries with all columns, in tiles that stay in the cache.
#pragma once

#include <algorithm>

#include "packed.hpp"

namespace safecf {

constexpr int64_t kTileColumns = 1024;
constexpr int64_t kTileRows = 12;  // a multiple of the rows of the kernels' tiles
constexpr int64_t kMostRows = 96;  // queries per task

// Calls body(first, count) for tiles of columns.
template <class Body>
void for_tiles(int64_t columns, const Body& body) {
  for (int64_t first = 0; first < columns; first += kTileColumns)
    body(first, std::min(kTileColumns, columns - first));
}

// Multiplies the queries, kMostRows of them per task, with the packed columns. For the queries of a
// task `open(row, count, arena)` returns one scan each, whose memory is at most `bytes(count)`; a
// scan is shown its query's scores by scan(first, scores), tile by tile, and may overwrite them;
// then `close(row, scan)` is called.
template <class Bytes, class Open, class Close>
void scan_tiles(const Packed& packed, MatrixView<const float> queries, int64_t columns,
                const Execution& execution, const Bytes& bytes, const Open& open,
                const Close& close) {
  if (queries.rows == 0) return;
  const int64_t share = (queries.rows + execution.num_threads() - 1) / execution.num_threads();
  const int64_t rows = std::min(round_up(share, kTileRows), kMostRows);
  const int64_t needed = scratch<float>(rows * kTileColumns) + bytes(rows) + packed.scratch();
  parallel_for((queries.rows + rows - 1) / rows, needed, execution, [&](int64_t task, Arena arena) {
    const int64_t first_row = task * rows, count = std::min(rows, queries.rows - first_row);
    const auto tile = arena.take<float>(rows, kTileColumns).rows_from(0, count);
    const auto scans = open(first_row, count, arena);
    const auto block = queries.rows_from(first_row, count);
    for_tiles(columns, [&](int64_t first, int64_t wide) {
      const auto scores = tile.columns_from(0, wide);
      packed.multiply(block, first, scores, arena);
      for (int64_t row = 0; row < count; ++row) scans[row].scan(first, scores.row(row));
    });
    for (int64_t row = 0; row < count; ++row) close(first_row + row, scans[row]);
  });
}

}  // namespace safecf
