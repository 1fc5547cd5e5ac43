// The ranks of some columns of one query, the targets, by counting the columns above them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

#include "excluded.hpp"

namespace safecf {

// The largest number below x; minus infinity has none, and stays.
inline float next_below(float x) {
  const auto bits = std::bit_cast<int32_t>(x + 0.0f);  // -0 becomes 0
  if (x == kNoScore) return x;
  if (bits == 0) return std::bit_cast<float>(INT32_MIN + 1);
  return std::bit_cast<float>(bits > 0 ? bits - 1 : bits + 1);
}

// Target j, with the score t_j and the column c_j, is below the columns i with
//   score_i > t_j ,  or  score_i = t_j and i < c_j .
class TargetRanks {
 public:
  // Bytes that the constructor takes.
  static int64_t bytes(int64_t targets) {
    return 2 * scratch<float>(targets) + 3 * scratch<int32_t>(targets);
  }
  // `scores` are those of the targets, summed as the tiles' are. The queries of a task share
  // `limits`, as long as the most targets, and `spare`, as long as a tile.
  TargetRanks(View<const int32_t> targets, View<const float> scores, View<float> limits,
              View<float> spare, Arena& arena, const Kernels& kernels)
      : order_(arena.take<int32_t>(targets.size)),
        columns_(arena.take<int32_t>(targets.size)),
        scores_(arena.take<float>(targets.size)),
        below_(arena.take<float>(targets.size)),
        above_(arena.take<int32_t>(targets.size)),
        limits_(limits.slice(0, targets.size)),
        spare_(spare),
        kernels_(&kernels) {
    // the lowest rank first; NaN counts as minus infinity
    const auto score = [&](int32_t j) { return scores[j] > kNoScore ? scores[j] : kNoScore; };
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
      return score(a) != score(b) ? score(a) < score(b) : targets[a] > targets[b];
    });
    for (int64_t j = 0; j < targets.size; ++j) {
      columns_[j] = targets[order_[j]];
      scores_[j] = score(order_[j]);
      below_[j] = next_below(scores_[j]);
      above_[j] = 0;
    }
  }

  // Counts the columns from `first` on, and overwrites their scores. Excluded ones have kNoScore.
  void scan(int64_t first, View<float> scores) {
    const int64_t end = first + scores.size;
    // ties count up to the target's column
    for (int64_t j = 0; j < columns_.size; ++j)
      limits_[j] = columns_[j] < end ? scores_[j] : below_[j];
    for (int64_t j = 0; j < columns_.size; ++j)
      if (first <= columns_[j] && columns_[j] < end)
        meet(j, scores.slice(0, columns_[j] - first + 1));
    kernels_->count_above_each(scores, limits_, above_, spare_);
  }

  // The ranks from 1 on, or 0 of a target that is excluded or whose score is NaN or minus infinity.
  void write(View<int32_t> ranks) const {
    for (int64_t j = 0; j < ranks.size; ++j)
      ranks[order_[j]] = columns_[j] == kUnranked ? 0 : above_[j] + 1;
  }

 private:
  static constexpr int32_t kUnranked = -1;

  // Counts the ties in front of a target, whose own score is the last one.
  void meet(int64_t j, View<const float> scores) {
    const auto before = scores.slice(0, scores.size - 1);
    if (scores[before.size] > kNoScore)
      above_[j] += static_cast<int32_t>(kernels_->count_above(before, below_[j]) -
                                        kernels_->count_above(before, scores_[j]));
    else
      columns_[j] = kUnranked;
  }

  View<int32_t> order_;
  View<int32_t> columns_;
  View<float> scores_;
  View<float> below_;
  View<int32_t> above_;
  View<float> limits_;
  View<float> spare_;
  const Kernels* kernels_;
};

}  // namespace safecf
