// The best columns of queries items' per row: scores in tiles, a buffer of hits per row.
#include <algorithm>
#include <bit>
#include <cfloat>
#include <functional>
#include <limits>
#include <optional>

#include "packed.hpp"

namespace safecf {
namespace {

constexpr int64_t kColumns = 1024;  // columns per tile of scores
constexpr int64_t kSegment = 256;   // columns looked at with one threshold
constexpr int64_t kSpare = 64;      // hits that a row may hold beyond 2k before the worst go
constexpr int64_t kFew = 16;        // queries for which packing the items would take longer
constexpr int64_t kFewRows = 2;     // rows per task then,
constexpr int64_t kManyRows = 96;   // and otherwise
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// A hit as one number: the better one, by the higher score and then by the lower column, is larger.
uint64_t key(float score, int32_t column) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 and 0 are the same score
  const uint32_t order = bits ^ (bits >> 31 ? 0xFFFFFFFFu : 0x80000000u);
  return static_cast<uint64_t>(order) << 32 | ~static_cast<uint32_t>(column);
}
int32_t column_of(uint64_t key) { return static_cast<int32_t>(~static_cast<uint32_t>(key)); }
float score_of(uint64_t key) {
  const auto order = static_cast<uint32_t>(key >> 32);
  return std::bit_cast<float>(order ^ (order >> 31 ? 0x80000000u : 0xFFFFFFFFu));
}

// Columns to leave out, in ascending order.
struct Banned {
  const int32_t* next = nullptr;
  const int32_t* end = nullptr;

  // Takes those in [first, last) out of a tile of scores, and goes on behind them.
  void strike(int64_t first, int64_t last, float* scores) {
    for (; next != end && *next < last; ++next)
      if (*next >= first) scores[*next - first] = kNothing;
  }
};

// What is known of a row's best columns after some tiles.
struct Search {
  std::vector<float> scores;  // of the best so far, and of others, in front
  std::vector<int32_t> columns;
  int64_t found = 0;
  float threshold = kNothing;  // what a later column, at a higher index, has to exceed
  Banned own, everywhere;

  void look_at(const Kernels& kernels, int64_t first, int64_t last, int64_t k, float* tile) {
    own.strike(first, last, tile);
    everywhere.strike(first, last, tile);
    for (int64_t from = first; from < last; from += kSegment) {
      const int64_t count = std::min(kSegment, last - from);
      if (found >= 2 * k + kSpare) found = kernels.prune(hits(0), found, k, &threshold);
      if (found >= 2 * k + kSpare) keep_best(k);
      if (static_cast<int64_t>(scores.size()) < found + count) {
        scores.resize(2 * (found + count));
        columns.resize(2 * (found + count));
      }
      found += kernels.collect(tile + (from - first), count, threshold, static_cast<int32_t>(from),
                               hits(found));
    }
  }

  void write(int64_t k, int32_t* ids, float* out) {
    keep_best(k);
    for (int64_t i = 0; i < k; ++i) {
      ids[i] = i < found ? columns[i] : -1;
      out[i] = i < found ? scores[i] : -FLT_MAX;
    }
  }

 private:
  Hits hits(int64_t from) { return {scores.data() + from, columns.data() + from}; }

  // Sorts the k best to the front, exactly, and forgets the others.
  void keep_best(int64_t k) {
    std::vector<uint64_t> keys(found);
    for (int64_t i = 0; i < found; ++i) keys[i] = key(scores[i], columns[i]);
    const int64_t kept = std::min(k, found);
    std::partial_sort(keys.begin(), keys.begin() + kept, keys.end(), std::greater<>());
    for (int64_t i = 0; i < kept; ++i) {
      columns[i] = column_of(keys[i]);
      scores[i] = score_of(keys[i]);
    }
    found = kept;
    if (kept == k) threshold = scores[k - 1];
  }
};

struct Scratch {
  Buffer scores, product;
};

}  // namespace

void topk(const Kernels& kernels, const Execution& execution, const float* queries,
          int64_t query_count, const float* items, int64_t item_count, int64_t factors, int64_t k,
          const Excluded& excluded, int32_t* ids, float* scores) {
  std::optional<Packed> packed;
  if (query_count > kFew)
    packed.emplace(kernels, execution, Strided{items, 1, factors}, factors, item_count);
  const int64_t block = packed ? kManyRows : kFewRows;

  // Scores of `count` queries and the columns [first, last), in rows of kColumns.
  const auto score = [&](const float* rows, int64_t count, int64_t first, int64_t last,
                         Scratch& scratch) {
    float* const tile = scratch.scores.data();
    if (packed) {
      packed->multiply(kernels, {rows, factors, 1}, count, first, last, tile, kColumns,
                       scratch.product.data());
      return;
    }
    for (int64_t row = 0; row < count; ++row)
      kernels.scores(items + first * factors, last - first, rows + row * factors, factors,
                     tile + row * kColumns);
  };
  const auto make_scratch = [&] {
    return Scratch{Buffer(block * kColumns), Buffer(kernels.multiply_scratch)};
  };
  parallel_for(
      (query_count + block - 1) / block, execution, make_scratch,
      [&](int64_t task, Scratch& scratch) {
        const int64_t begin = task * block, count = std::min(block, query_count - begin);
        std::vector<Search> rows(count);
        for (int64_t row = 0; row < count; ++row) {
          const int64_t* const at = excluded.offsets ? excluded.offsets + begin + row : nullptr;
          if (at) rows[row].own = {excluded.columns + at[0], excluded.columns + at[1]};
          rows[row].everywhere = {excluded.everywhere,
                                  excluded.everywhere + excluded.everywhere_count};
        }
        for (int64_t first = 0; first < item_count; first += kColumns) {
          const int64_t last = std::min(item_count, first + kColumns);
          score(queries + begin * factors, count, first, last, scratch);
          for (int64_t row = 0; row < count; ++row)
            rows[row].look_at(kernels, first, last, k, scratch.scores.data() + row * kColumns);
        }
        for (int64_t row = 0; row < count; ++row)
          rows[row].write(k, ids + (begin + row) * k, scores + (begin + row) * k);
      });
}

}  // namespace safecf
