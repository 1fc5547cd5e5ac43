// The first row that could not be solved, whichever thread finds it.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace safecf {

class FirstFailure {
 public:
  void at(int64_t row) {
    for (int64_t seen = row_; row < seen && !row_.compare_exchange_weak(seen, row);) {
    }
  }
  // -1 where there is none
  int64_t row() const { return row_ == kNone ? -1 : row_.load(); }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> row_{kNone};
};

}  // namespace safecf
