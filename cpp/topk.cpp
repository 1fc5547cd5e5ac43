// The best columns of queries items' per row: scores in tiles, a buffer of hits per row.
#include <algorithm>
#include <cfloat>
#include <limits>
#include <optional>

#include "packed.hpp"

namespace safecf {
namespace {

constexpr int64_t kColumns = 1024;  // columns per tile of scores
constexpr int64_t kSpare = 64;      // hits that a row may hold beyond 2k before the worst go
constexpr int64_t kFew = 16;        // queries for which packing the items would take longer
constexpr int64_t kFewRows = 2;     // rows per task then,
constexpr int64_t kManyRows = 96;   // and otherwise
constexpr float kNothing = -std::numeric_limits<float>::infinity();

struct Hit {
  float score;
  int32_t id;
};

// "Better": the higher score, then the lower index.
inline bool better(const Hit& a, const Hit& b) {
  return a.score > b.score || (a.score == b.score && a.id < b.id);
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
  std::vector<Hit> found;      // the best so far, and others
  float threshold = kNothing;  // what a later column, at a higher index, has to exceed
  Banned own, everywhere;

  void keep_best(int64_t k) {
    if (static_cast<int64_t>(found.size()) <= k) return;
    std::nth_element(found.begin(), found.begin() + (k - 1), found.end(), better);
    found.resize(k);
    threshold = found.back().score;
  }

  void look_at(const Kernels& kernels, int64_t first, int64_t last, int64_t k, float* scores) {
    own.strike(first, last, scores);
    everywhere.strike(first, last, scores);
    const int64_t count = last - first, room = 2 * k + kSpare;
    for (int64_t j = 0; (j = kernels.next_above(scores, j, count, threshold)) < count; ++j) {
      found.push_back({scores[j], static_cast<int32_t>(first + j)});
      if (static_cast<int64_t>(found.size()) == room) keep_best(k);
    }
  }

  void write(int64_t k, int32_t* ids, float* scores) {
    keep_best(k);
    std::sort(found.begin(), found.end(), better);
    for (int64_t i = 0; i < k; ++i) {
      const bool there = i < static_cast<int64_t>(found.size());
      ids[i] = there ? found[i].id : -1;
      scores[i] = there ? found[i].score : -FLT_MAX;
    }
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
