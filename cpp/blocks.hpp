// Blocks of rows: the tasks of the parallel loop over a sparse matrix.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "records.hpp"

namespace safecf {

// Rows per block: enough for the rotations to run at the speed of a matrix product.
constexpr int64_t kBlockRows = 96;

struct Block {
  int64_t first, last;
  int64_t rows() const { return last - first; }
};

// The rows of a matrix in blocks of at most kBlockRows rows and about 1/256 of the interactions, so
// that no thread waits for another at the end. The blocks depend on the matrix alone.
struct RowBlocks {
  std::vector<Block> blocks;
  int64_t longest_row = 0;

  explicit RowBlocks(const Csr& matrix) {
    const int64_t rows = matrix.rows(), share = matrix.columns.size / 256 + 1;
    int64_t entries = 0;  // of the last block
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t count = matrix.entries(row).count;
      longest_row = std::max(longest_row, count);
      entries += count;
      if (blocks.empty() || blocks.back().rows() == kBlockRows || entries > share) {
        blocks.push_back({row, row});
        entries = count;
      }
      ++blocks.back().last;
    }
  }
  int64_t size() const { return static_cast<int64_t>(blocks.size()); }
  const Block& operator[](int64_t task) const { return blocks[task]; }
};

}  // namespace safecf
