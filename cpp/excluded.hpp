// Columns to leave out of rankings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "records.hpp"

namespace safecf {

constexpr float kNoScore = -std::numeric_limits<float>::infinity();

// What to leave out of the results: columns per query, ascending, and columns for all queries.
struct Excluded {
  const Csr* rows = nullptr;
  View<const int32_t> everywhere;
};

// Columns to leave out, in ascending order, of which each is read once.
struct ExcludedColumns {
  const int32_t* next = nullptr;
  const int32_t* end = nullptr;

  // Takes those in [first, first + scores.size) out of the scores, and goes on behind them. Throws
  // std::invalid_argument at one that is before them.
  void mask(int64_t first, View<float> scores) {
    for (; next != end; ++next) {
      const int64_t column = read_once(*next);
      if (column >= first + scores.size) return;
      if (column < first)
        damaged("the columns to exclude have " + std::to_string(column) + " out of order");
      scores[column - first] = kNoScore;
    }
  }
  // Throws std::invalid_argument where one is behind the last column.
  void close(const Side& catalogue) const {
    if (next != end) catalogue.lacks(read_once(*next));
  }
};

// The columns to leave out of one query's scores, which come tile by tile.
struct QueryMask {
  ExcludedColumns own, everywhere;

  void mask(int64_t first, View<float> scores) {
    own.mask(first, scores);
    everywhere.mask(first, scores);
  }
  void close(const Side& catalogue) const {
    own.close(catalogue);
    everywhere.close(catalogue);
  }
};

class QueryMasks {
 public:
  explicit QueryMasks(const Excluded& excluded)
      : rows_(excluded.rows), everywhere_(excluded.everywhere.begin(), excluded.everywhere.end()) {
    std::sort(everywhere_.begin(), everywhere_.end());
  }

  QueryMask of(int64_t row) const {
    const Entries own = rows_ ? rows_->entries(row) : Entries{0, 0};
    const int32_t* const first = rows_ ? rows_->columns.data + own.begin : nullptr;
    return {{first, first + own.count},
            {everywhere_.data(), everywhere_.data() + everywhere_.size()}};
  }

 private:
  const Csr* rows_;
  std::vector<int32_t> everywhere_;
};

}  // namespace safecf
