// The best columns of queries items' per row: scores in tiles, a buffer of hits per row.
#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "packed.hpp"

namespace safecf {
namespace {

constexpr int64_t kColumns = 1024;  // columns per tile of scores
constexpr int64_t kSegment = 256;   // columns looked at with one threshold
constexpr int64_t kSpare = 64;      // hits that a row may hold beyond 2k before the worst go
constexpr int64_t kFewRows = 2;     // rows per task then,
constexpr int64_t kManyRows = 96;   // and otherwise
constexpr int64_t kChosen = 8;      // items per best one from which a sketch is of use
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
      add_above(kernels, from, count, tile + (from - first));
    }
  }

  // Adds the columns from `first` on whose scores exceed the threshold.
  void add_above(const Kernels& kernels, int64_t first, int64_t count, const float* tile) {
    if (static_cast<int64_t>(scores.size()) < found + count) {
      scores.resize(2 * (found + count));
      columns.resize(2 * (found + count));
    }
    found += kernels.collect(tile, count, threshold, static_cast<int32_t>(first), hits(found));
  }

  void write(int64_t k, int32_t* ids, float* out) {
    keep_best(k);
    for (int64_t i = 0; i < k; ++i) {
      ids[i] = i < found ? columns[i] : -1;
      out[i] = i < found ? scores[i] : -FLT_MAX;
    }
  }

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

 private:
  Hits hits(int64_t from) { return {scores.data() + from, columns.data() + from}; }
};

struct Scratch {
  Buffer scores, product, query;
};

// How far the rough score x.z of an item y may be from its score, at most, if that can be told:
//   |x.z - x.y| <= 2^-8 sum_i |x_i y_i| <= 2^-8 |x| |y| ,
// and both sums are rounded, by less than (d + 16) 2^-23 |x| |y| each. Norms that are neither small
// nor large rule overflow out, and what is lost to underflow is far below that rounding.
std::optional<float> margin_of(const float* query, const Items& items) {
  constexpr double kSmall = 0x1p-50, kLarge = 0x1p50;
  double square = 0.0;
  for (int64_t i = 0; i < items.factors; ++i) square += static_cast<double>(query[i]) * query[i];
  for (const double norm : {std::sqrt(square), static_cast<double>(items.longest)})
    if (!(norm > kSmall && norm < kLarge)) return std::nullopt;
  const double share = 0x1p-8 + static_cast<double>(items.factors + 16) * 0x1p-22;
  return static_cast<float>(share * std::sqrt(square) * items.longest);
}

// A row's best columns, by two looks: at all rough scores, and at the scores of the columns that
// may be among the best by these. At least k scores are not below t - margin, t being the k-th
// best rough score, so none of the k best is a column whose rough score is below t - 2 margin.
void search_sketch(const Kernels& kernels, const float* query, const Items& items, float margin,
                   int64_t k, Search& row, Scratch& scratch) {
  const int64_t width = rough_width(items.factors);
  std::copy_n(query, items.factors, scratch.query.data());
  const auto for_tiles = [&](auto body) {
    for (int64_t first = 0; first < items.count; first += kColumns)
      body(first, std::min(kColumns, items.count - first), scratch.scores.data() + first);
  };
  for_tiles([&](int64_t first, int64_t count, float* tile) {
    kernels.rough_scores(items.rough + first * (width / 2), count, scratch.query.data(), width,
                         tile);
    row.look_at(kernels, first, first + count, k, tile);
  });
  row.keep_best(k);
  row.found = 0;
  row.threshold -= 2.0f * margin;
  for_tiles([&](int64_t first, int64_t count, const float* tile) {
    row.add_above(kernels, first, count, tile);
  });
  kernels.scores(items.rows, row.columns.data(), row.found, query, items.factors,
                 row.scores.data());
}

}  // namespace

void topk(const Kernels& kernels, const Execution& execution, const float* queries,
          int64_t query_count, const Items& items, int64_t k, const Excluded& excluded,
          int32_t* ids, float* scores) {
  const int64_t factors = items.factors;
  std::optional<Packed> packed;
  if (query_count > kFewQueries)
    packed.emplace(kernels, execution, Strided{items.rows, 1, factors}, factors, items.count);
  const bool sketched = items.rough && !packed && k < items.count / kChosen;
  const int64_t block = packed ? kManyRows : sketched ? 1 : kFewRows;

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
      kernels.scores(items.rows + first * factors, nullptr, last - first, rows + row * factors,
                     factors, tile + row * kColumns);
  };
  const auto make_scratch = [&] {
    return Scratch{Buffer(sketched ? std::max(items.count, kColumns) : block * kColumns),
                   Buffer(kernels.multiply_scratch), Buffer(rough_width(factors), 0.0f)};
  };
  parallel_for(
      (query_count + block - 1) / block, execution, make_scratch,
      [&](int64_t task, Scratch& scratch) {
        const int64_t begin = task * block, count = std::min(block, query_count - begin);
        const float* const asked = queries + begin * factors;
        std::vector<Search> rows(count);
        for (int64_t row = 0; row < count; ++row) {
          const int64_t* const at = excluded.offsets ? excluded.offsets + begin + row : nullptr;
          if (at) rows[row].own = {excluded.columns + at[0], excluded.columns + at[1]};
          rows[row].everywhere = {excluded.everywhere,
                                  excluded.everywhere + excluded.everywhere_count};
        }
        const auto margin = sketched ? margin_of(asked, items) : std::nullopt;
        if (margin) {
          search_sketch(kernels, asked, items, *margin, k, rows[0], scratch);
        } else {
          for (int64_t first = 0; first < items.count; first += kColumns) {
            const int64_t last = std::min(items.count, first + kColumns);
            score(asked, count, first, last, scratch);
            for (int64_t row = 0; row < count; ++row)
              rows[row].look_at(kernels, first, last, k, scratch.scores.data() + row * kColumns);
          }
        }
        for (int64_t row = 0; row < count; ++row)
          rows[row].write(k, ids + (begin + row) * k, scores + (begin + row) * k);
      });
}

}  // namespace safecf
