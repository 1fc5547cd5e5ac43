// The ranks of some columns of one query, the targets, by counting the columns above them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "excluded.hpp"
#include "sort_key.hpp"

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
// In a tile before c_j these are the scores above the largest number below t_j, and in a tile
// behind it those above t_j.
class TargetRanks {
 public:
  // Bytes that the constructor takes.
  static int64_t bytes(int64_t targets) {
    return 2 * scratch<float>(targets) + 2 * scratch<int32_t>(targets);
  }
  // `targets` ascend and are the core's own, and `scores` are theirs, summed as the tiles' are. The
  // queries of a task share `keys`, as long as the most targets, and `spare`, as long as a tile.
  TargetRanks(View<const int32_t> targets, View<const float> scores, View<uint64_t> keys,
              View<float> spare, Arena& arena, const Kernels& kernels)
      : columns_(targets),
        places_(arena.take<int32_t>(targets.size)),
        scores_(arena.take<float>(targets.size)),
        limits_(arena.take<float>(targets.size)),
        above_(arena.take<int32_t>(targets.size)),
        spare_(spare),
        kernels_(&kernels) {
    // the lowest rank first; NaN counts as minus infinity
    const auto sorted = keys.slice(0, targets.size);
    for (int64_t i = 0; i < targets.size; ++i)
      sorted[i] = sort_key(scores[i] > kNoScore ? scores[i] : kNoScore, static_cast<int32_t>(i));
    std::sort(sorted.begin(), sorted.end());
    for (int64_t j = 0; j < targets.size; ++j) {
      places_[column_of(sorted[j])] = static_cast<int32_t>(j);
      scores_[j] = score_of(sorted[j]);
      limits_[j] = next_below(scores_[j]);
      above_[j] = 0;
    }
  }

  // Counts the columns from `first` on, and overwrites their scores. Excluded ones have kNoScore.
  void scan(int64_t first, View<float> scores) {
    for (; next_ < columns_.size && columns_[next_] < first + scores.size; ++next_) {
      const int64_t at = columns_[next_] - first, j = places_[next_];
      above_[j] += static_cast<int32_t>(kernels_->count_equal(scores.slice(0, at), scores_[j]));
      limits_[j] = scores_[j];
      if (!(scores[at] > kNoScore)) scores_[j] = kNoScore;
    }
    kernels_->count_above_each(scores, limits_, above_, spare_);
  }

  // The ranks from 1 on, or 0 of a target that is excluded or whose score is NaN or minus infinity.
  void write(View<int32_t> ranks) const {
    for (int64_t i = 0; i < ranks.size; ++i) {
      const int32_t j = places_[i];
      ranks[i] = scores_[j] > kNoScore ? above_[j] + 1 : 0;
    }
  }

 private:
  View<const int32_t> columns_;  // of the targets
  View<int32_t> places_;         // of the targets among those below, by score
  View<float> scores_;
  View<float> limits_;   // that the scores of columns above a target exceed
  View<int32_t> above_;  // columns so far
  View<float> spare_;
  const Kernels* kernels_;
  int64_t next_ = 0;  // target, by column
};

}  // namespace safecf
