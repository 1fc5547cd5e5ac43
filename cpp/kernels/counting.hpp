// How many scores are above each of several thresholds.
#pragma once

#include "search.hpp"

namespace {

typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));

constexpr int kThresholds = kLanes == 16 ? 8 : 4;  // that are held in registers
constexpr int64_t kFewThresholds = kLanes == 16 ? 16 : 32;

SAFECF_INLINE int32_t sum(Ints v) {
  union {
    Ints whole;
    QuadPlaces quads[kLanes / 4];
  } parts = {v};
  QuadPlaces total = parts.quads[0];
  SAFECF_UNROLL
  for (int i = 1; i < kLanes / 4; ++i) total += parts.quads[i];
  return (total[0] + total[2]) + (total[1] + total[3]);
}

// The scores behind the last whole vector, filled up with minus infinity, which is above nothing.
SAFECF_INLINE Vec last_lanes(View<const float> scores) {
  Vec last = splat(-__builtin_inff());
  const int64_t whole = scores.size / kLanes * kLanes;
  for (int64_t i = whole; i < scores.size; ++i) last[i - whole] = scores[i];
  return last;
}

template <int kCount>
inline void count_group(View<const float> scores, Vec last, View<const float> thresholds,
                        View<int32_t> counts) {
  Vec limits[kCount];
  Ints found[kCount];
  SAFECF_UNROLL
  for (int j = 0; j < kCount; ++j) {
    limits[j] = splat(thresholds[j]);
    found[j] = -(last > limits[j]);  // true is -1
  }
  for (int64_t i = 0; i + kLanes <= scores.size; i += kLanes) {
    const Vec score = load(scores, i);
    SAFECF_UNROLL
    for (int j = 0; j < kCount; ++j) found[j] -= score > limits[j];
  }
  SAFECF_UNROLL
  for (int j = 0; j < kCount; ++j) counts[j] += sum(found[j]);
}

// A group of thresholds at a time.
inline void count_groups(View<const float> scores, View<const float> thresholds,
                         View<int32_t> counts) {
  const Vec last = last_lanes(scores);
  for (int64_t j = 0; j < thresholds.size;) {
    const int64_t left = thresholds.size - j;
    const int group = left >= kThresholds ? kThresholds : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    const auto run = group == 8   ? count_group<8>
                     : group == 4 ? count_group<4>
                     : group == 2 ? count_group<2>
                                  : count_group<1>;
    run(scores, last, thresholds.slice(j, group), counts.slice(j, group));
    j += group;
  }
}

// Moves the scores above the threshold to `above`, the others to the front; returns the number of
// those above.
inline int64_t split(View<float> scores, float threshold, View<float> above) {
  int64_t up = 0, i = 0;
#if defined(__AVX512F__)
  for (; i + kLanes <= scores.size; i += kLanes) {
    const Vec score = load(scores, i);
    const auto bits = static_cast<__mmask16>(lanes_above(score, threshold));
    const auto others = static_cast<__mmask16>(~bits);
    store(above, up, _mm512_maskz_compress_ps(bits, score));
    store(scores, i - up, _mm512_maskz_compress_ps(others, score));
    up += __builtin_popcount(bits);
  }
#endif
  for (; i < scores.size; ++i) {
    const float score = scores[i];
    above[up] = score;
    scores[i - up] = score;
    up += score > threshold;
  }
  return up;
}

// Few thresholds are compared with all scores. Many are halved: the scores above the middle one are
// above all before it, and the others above none behind it.
inline void count_above_each(View<float> scores, View<const float> thresholds, View<int32_t> counts,
                             View<float> spare) {
  SAFECF_ASSERT(thresholds.size == counts.size && scores.size <= spare.size);
  if (thresholds.size <= kFewThresholds) return count_groups(scores, thresholds, counts);
  const int64_t middle = thresholds.size / 2;
  const int64_t up = split(scores, thresholds[middle], spare), down = scores.size - up;
  for (int64_t j = 0; j <= middle; ++j) counts[j] += static_cast<int32_t>(up);
  count_above_each(spare.slice(0, up), thresholds.from(middle + 1), counts.from(middle + 1),
                   scores.from(down));
  count_above_each(scores.slice(0, down), thresholds.slice(0, middle), counts.slice(0, middle),
                   spare);
}

}  // namespace
