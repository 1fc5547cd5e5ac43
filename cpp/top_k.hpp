// The k best columns of one query: a buffer of candidates that all exceed a rising threshold.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <functional>

#include "excluded.hpp"
#include "sort_key.hpp"

namespace safecf {

class TopK {
 public:
  static constexpr int64_t kSegment = 256;  // columns compared with one threshold
  static constexpr int64_t kSpare = 64;     // candidates beyond 2k before the worst go

  // Candidates that `scan` may hold at once.
  static int64_t capacity(int64_t k, int64_t columns) {
    return std::min(2 * k + kSpare + kSegment, columns);
  }
  // Bytes that the constructor takes; the keys are shared by the queries of a task.
  static int64_t bytes(int64_t capacity) {
    return scratch<float>(capacity) + scratch<int32_t>(capacity);
  }
  TopK(int64_t k, int64_t capacity, View<uint64_t> keys, Arena& arena, const Kernels& kernels)
      : k_(k),
        candidates_{arena.take<float>(capacity), arena.take<int32_t>(capacity)},
        keys_(keys),
        kernels_(&kernels) {}

  // Adds the columns from `first` on whose scores may be among the k best. Columns come in
  // ascending order, so that a later one has to exceed the threshold.
  void scan(int64_t first, View<const float> scores) {
    for (int64_t from = 0; from < scores.size; from += kSegment) {
      if (found_ >= 2 * k_ + kSpare) found_ = kernels_->prune(held(), k_, &threshold_);
      if (found_ >= 2 * k_ + kSpare) keep_best();
      add(first + from, scores.slice(from, std::min(kSegment, scores.size - from)));
    }
  }

  // Drops the candidates and lowers the threshold by `margin` below the k-th best score; `add`
  // then collects all columns above it.
  void restart_below(float margin) {
    keep_best();
    found_ = 0;
    threshold_ -= margin;
  }

  // Adds the columns from `first` on whose scores exceed the threshold.
  void add(int64_t first, View<const float> scores) {
    found_ +=
        kernels_->collect(scores, threshold_, static_cast<int32_t>(first),
                          {candidates_.scores.from(found_), candidates_.columns.from(found_)});
  }

  // The candidates, whose scores may be replaced.
  Candidates held() {
    return {candidates_.scores.slice(0, found_), candidates_.columns.slice(0, found_)};
  }

  // Best first, padded with -1 and -FLT_MAX.
  void write(View<int32_t> ids, View<float> scores) {
    keep_best();
    for (int64_t i = 0; i < ids.size; ++i) {
      ids[i] = i < found_ ? candidates_.columns[i] : -1;
      scores[i] = i < found_ ? candidates_.scores[i] : -FLT_MAX;
    }
  }

 private:
  // Sorts the k best to the front and forgets the others.
  void keep_best() {
    const auto keys = keys_.slice(0, found_);
    for (int64_t i = 0; i < found_; ++i)
      keys[i] = sort_key(candidates_.scores[i], candidates_.columns[i]);
    found_ = std::min(k_, found_);
    std::partial_sort(keys.begin(), keys.begin() + found_, keys.end(), std::greater<>());
    for (int64_t i = 0; i < found_; ++i) {
      candidates_.columns[i] = column_of(keys[i]);
      candidates_.scores[i] = score_of(keys[i]);
    }
    if (found_ == k_) threshold_ = candidates_.scores[k_ - 1];
  }

  int64_t k_;
  Candidates candidates_;
  View<uint64_t> keys_;
  const Kernels* kernels_;
  int64_t found_ = 0;
  float threshold_ = kNoScore;
};

}  // namespace safecf
