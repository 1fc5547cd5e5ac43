// Columns to leave out of rankings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "records.hpp"

namespace safecf {

constexpr float kNoScore = -std::numeric_limits<float>::infinity();

// What to leave out of the results: columns per query, ascending, and columns for all queries.
struct Excluded {
  const Csr* rows = nullptr;
  View<const int32_t> everywhere;
};

// Columns to leave out, in ascending order.
struct ExcludedColumns {
  const int32_t* next = nullptr;
  const int32_t* end = nullptr;

  // Takes those in [first, first + scores.size) out of the scores, and goes on behind them.
  void mask(int64_t first, View<float> scores) {
    for (; next != end && *next < first + scores.size; ++next)
      if (*next >= first) scores[*next - first] = kNoScore;
  }
};

// The columns to leave out of one query's scores, which come tile by tile.
struct QueryMask {
  ExcludedColumns own, everywhere;

  void mask(int64_t first, View<float> scores) {
    own.mask(first, scores);
    everywhere.mask(first, scores);
  }
};

class QueryMasks {
 public:
  explicit QueryMasks(const Excluded& excluded)
      : rows_(excluded.rows), everywhere_(excluded.everywhere.begin(), excluded.everywhere.end()) {
    std::sort(everywhere_.begin(), everywhere_.end());
  }

  QueryMask of(int64_t row) const {
    const auto own = rows_ ? rows_->row_columns(row) : View<const int32_t>();
    return {{own.begin(), own.end()},
            {everywhere_.data(), everywhere_.data() + everywhere_.size()}};
  }

 private:
  const Csr* rows_;
  std::vector<int32_t> everywhere_;
};

}  // namespace safecf
