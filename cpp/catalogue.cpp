#include "catalogue.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "checks.hpp"
#include "target_ranks.hpp"
#include "tiles.hpp"
#include "top_k.hpp"

namespace safecf {
namespace {

constexpr int64_t kFewQueries = 6;     // per thread, for which the bfloat16 copy is faster,
constexpr int64_t kCached = 32 << 20;  // if it has so few bytes that it stays in the caches
constexpr int64_t kItemsPerBest = 8;   // for which the bfloat16 copy is of use

// A bound on the error of the score x.z of an item y in bfloat16:
//   |x.z - x.y| <= 2^-8 sum_i |x_i y_i| <= 2^-8 |x| |y| ,
// and both sums are rounded, by less than (d + 16) 2^-23 |x| |y| each. There is none for norms that
// are so small or large that sums might underflow or overflow.
std::optional<float> error_bound(View<const float> query, float largest_square) {
  constexpr double kSmall = 0x1p-100, kLarge = 0x1p100;
  double square = 0.0;
  for (const float x : query) square += static_cast<double>(x) * x;
  for (const double each : {square, static_cast<double>(largest_square)})
    if (!(each > kSmall && each < kLarge)) return std::nullopt;
  const double share = 0x1p-8 + static_cast<double>(query.size + 16) * 0x1p-22;
  return static_cast<float>(share * std::sqrt(square * largest_square));
}

}  // namespace

Catalogue::Catalogue(MatrixView<const float> items, const Kernels& kernels)
    : items_(items), kernels_(kernels) {
  check_factors(items.columns);
  require(items.rows <= std::numeric_limits<int32_t>::max(), "the catalogue has over 2^31 rows");
}

Catalogue::LowPrecision::LowPrecision(MatrixView<const float> items, const Execution& execution)
    : words(static_cast<size_t>(items.rows * bfloat16_width(items.columns) / 2)),
      count(items.rows) {
  constexpr int64_t kItems = 256;  // per task
  std::vector<float> squares(static_cast<size_t>((count + kItems - 1) / kItems), 0.0f);
  parallel_for(static_cast<int64_t>(squares.size()), execution, [&](int64_t task) {
    for (int64_t row = task * kItems; row < std::min(count, (task + 1) * kItems); ++row) {
      const float square = execution.kernels->squared_norm(items.row(row));
      if (!(square <= squares[task]))  // true for NaN
        squares[task] = std::isfinite(square) ? square : HUGE_VALF;
    }
  });
  largest_square = *std::max_element(squares.begin(), squares.end());
  to_bfloat16(items, {words.data(), count, bfloat16_width(items.columns) / 2}, execution);
}

// One search: its arguments, and both ways to run it.
class Catalogue::Search {
 public:
  Search(MatrixView<const float> items, MatrixView<const float> queries, const Excluded& excluded,
         const Found& found, const Execution& execution)
      : items_(items),
        queries_(queries),
        masks_(excluded),
        found_(found),
        execution_(execution),
        kernels_(*execution.kernels) {}

  // Products with the packed items, in tiles of scores.
  void many(const Packed& packed) const {
    const int64_t capacity = TopK::capacity(k(), items_.rows);
    scan_tiles(
        packed, queries_, items_.rows, execution_,
        [&](int64_t rows) {
          return scratch<Query>(rows) + rows * TopK::bytes(capacity) + scratch<uint64_t>(capacity);
        },
        [&](int64_t first, int64_t count, Arena& arena) {
          const auto keys = arena.take<uint64_t>(capacity);
          const auto searches = arena.take<Query>(count);
          for (int64_t row = 0; row < count; ++row)
            searches[row] = query(first + row, capacity, keys, arena);
          return searches;
        },
        [&](int64_t row, Query& search) { write(row, search); });
  }

  // One query after the other, on the items in bfloat16 if there are any.
  void few(const LowPrecision* low) const {
    const int64_t wide = low ? items_.rows : std::min(items_.rows, kTileColumns);
    const int64_t capacity = low ? items_.rows : TopK::capacity(k(), items_.rows);
    const int64_t needed = scratch<float>(wide) + TopK::bytes(capacity) +
                           scratch<uint64_t>(capacity) +
                           scratch<float>(bfloat16_width(items_.columns));
    parallel_for(queries_.rows, needed, execution_, [&](int64_t row, Arena arena) {
      const auto x = queries_.row(row);
      const auto scores = arena.take<float>(wide);
      const auto keys = arena.take<uint64_t>(capacity);
      Query search = query(row, capacity, keys, arena);
      const auto bound = low ? error_bound(x, low->largest_square) : std::nullopt;
      if (bound)
        search_low_precision(x, *low, *bound, scores, search, arena);
      else
        for_tiles(items_.rows, [&](int64_t first, int64_t count) {
          const auto tile = scores.slice(0, count);
          kernels_.score_rows(items_.rows_from(first, count), {}, x, tile);
          search.scan(first, tile);
        });
      write(row, search);
    });
  }

 private:
  struct Query {
    TopK best;
    QueryMask excluded;

    void scan(int64_t first, View<float> scores) {
      excluded.mask(first, scores);
      best.scan(first, scores);
    }
  };

  int64_t k() const { return found_.ids.columns; }

  Query query(int64_t row, int64_t capacity, View<uint64_t> keys, Arena& arena) const {
    return {TopK(k(), capacity, keys, arena, kernels_), masks_.of(row)};
  }

  // At least k scores are not below t - bound, t being the k-th best score in bfloat16, so that
  // none of the k best is a column whose score in bfloat16 is below t - 2 bound. The others are
  // scored in float32.
  void search_low_precision(View<const float> x, const LowPrecision& low, float bound,
                            View<float> scores, Query& search, Arena arena) const {
    const auto padded = arena.take<float>(bfloat16_width(x.size));
    copy_padded(x, padded);
    for_tiles(items_.rows, [&](int64_t first, int64_t count) {
      const auto tile = scores.slice(first, count);
      kernels_.bfloat16_scores(low.rows().rows_from(first, count), padded, tile);
      search.scan(first, tile);
    });
    search.best.restart_below(2.0f * bound);
    search.best.add(0, scores);
    const Candidates held = search.best.held();
    kernels_.score_rows(items_, held.columns, x, held.scores);
  }

  void write(int64_t row, Query& search) const {
    search.excluded.close({"the catalogue", items_.rows});
    search.best.write(found_.ids.row(row), found_.scores.row(row));
  }

  const MatrixView<const float> items_, queries_;
  const QueryMasks masks_;
  const Found& found_;
  const Execution& execution_;
  const Kernels& kernels_;
};

const Catalogue::LowPrecision* Catalogue::low_precision(int64_t k, const Execution& execution) {
  const bool smaller = bfloat16_width(items_.columns) / 2 < items_.columns;
  if (!smaller || k >= items_.rows / kItemsPerBest || !searched_.exchange(true)) return nullptr;
  return &low_precision_.get(
      [&] { return std::make_unique<const LowPrecision>(items_, execution); });
}

void Catalogue::check(MatrixView<const float> queries, const Excluded& excluded,
                      const Execution& execution) const {
  if (execution.kernels != &kernels_)
    throw std::invalid_argument(std::string("the catalogue was made with the kernels '") +
                                kernels_.name + "': search with the same ones");
  require(queries.columns == items_.columns, "queries and factors differ in width");
  if (!excluded.rows) return;
  safecf::check(*excluded.rows);
  require(excluded.rows->rows() == queries.rows, "exclude needs one row per query");
}

const Packed& Catalogue::packed(const Execution& execution) {
  return packed_.get(
      [&] { return std::make_unique<const Packed>(Operand(items_).transposed(), execution); });
}

void Catalogue::search(MatrixView<const float> queries, const Excluded& excluded,
                       const Found& found, const Execution& execution) {
  check(queries, excluded, execution);
  require(found.ids.rows == queries.rows && found.scores.rows == queries.rows &&
              found.scores.columns == found.ids.columns,
          "ids and scores are not queries x k");
  require(found.ids.columns >= 1, "k is less than 1");
  check_apart({found.ids, found.scores},
              {items_, queries, excluded.rows ? *excluded.rows : Csr(), excluded.everywhere});
  const Search search(items_, queries, excluded, found, execution);
  const int64_t bytes = items_.rows * bfloat16_width(items_.columns) * 2;
  const bool few = queries.rows <= (bytes <= kCached ? kFewQueries * execution.num_threads() : 1);
  const LowPrecision* const low = few ? low_precision(found.ids.columns, execution) : nullptr;
  if (few && (low || !packed_.made()))
    search.few(low);
  else
    search.many(packed(execution));
}

void Catalogue::ranks(MatrixView<const float> queries, const Csr& targets, const Excluded& excluded,
                      View<int32_t> ranks, const Execution& execution) {
  struct Query {
    Entries targets;
    TargetRanks found;
    QueryMask excluded;

    void scan(int64_t first, View<float> scores) {
      excluded.mask(first, scores);
      found.scan(first, scores);
    }
  };
  check(queries, excluded, execution);
  safecf::check(targets);
  require(targets.rows() == queries.rows, "targets needs one row per query");
  require(ranks.size == targets.columns.size, "one rank per target is needed");
  check_apart({ranks}, {items_, queries, targets, excluded.rows ? *excluded.rows : Csr(),
                        excluded.everywhere});
  const QueryMasks masks(excluded);
  const int64_t longest = targets.longest_row();
  scan_tiles(
      packed(execution), queries, items_.rows, execution,
      [&](int64_t rows) {
        return scratch<float>(longest) + scratch<uint64_t>(longest) + scratch<float>(kTileColumns) +
               scratch<Query>(rows) +
               rows * (scratch<int32_t>(longest) + TargetRanks::bytes(longest));
      },
      [&](int64_t first, int64_t count, Arena& arena) {
        const auto scores = arena.take<float>(longest);
        const auto keys = arena.take<uint64_t>(longest);
        const auto spare = arena.take<float>(kTileColumns);
        const auto scans = arena.take<Query>(count);
        for (int64_t row = 0; row < count; ++row) {
          const Entries wanted = targets.entries(first + row);
          const auto columns =
              targets.read_columns(wanted, side(), arena.take<int32_t>(longest), kernels_);
          if (!std::is_sorted(columns.begin(), columns.end()))
            damaged("the targets of query " + std::to_string(first + row) + " do not ascend");
          const auto own = scores.slice(0, columns.size);
          kernels_.score_rows(items_, columns, queries.row(first + row), own);
          scans[row] = {
              wanted, {columns, own, keys, spare, arena, kernels_}, masks.of(first + row)};
        }
        return scans;
      },
      [&](int64_t row, const Query& scan) {
        scan.excluded.close(side());
        scan.found.write(ranks.slice(scan.targets.begin, scan.targets.count));
      });
}

int64_t Catalogue::bytes() const {
  const Packed* const packed = packed_.made();
  const LowPrecision* const low = low_precision_.made();
  return (packed ? packed->bytes() : 0) +
         (low ? static_cast<int64_t>(low->words.size() * sizeof(uint32_t)) : 0);
}

}  // namespace safecf
