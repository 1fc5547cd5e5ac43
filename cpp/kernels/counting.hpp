// How many scores are above each of several thresholds.
#pragma once

#include "search.hpp"

namespace {

constexpr int64_t kFewThresholds = kLanes == 16 ? 16 : 64;
constexpr int kThresholds = kLanes == 16 ? 8 : 4;  // that are held in registers
constexpr int kVectors = kLanes == 16 ? 4 : 1;     // of scores, next to them
constexpr int64_t kCompared = static_cast<int64_t>(kVectors) * kLanes;

typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));

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

// A number of scores: of bits in masks with AVX-512, else per lane until the end.
#if defined(__AVX512F__)
typedef int64_t Count;
SAFECF_INLINE int32_t sum(Count count) { return static_cast<int32_t>(count); }

SAFECF_INLINE Count count_block(const Vec (&scores)[kVectors], Vec limit) {
  const auto above = [&](int i)
                         SAFECF_ALWAYS { return _mm512_cmp_ps_mask(scores[i], limit, _CMP_GT_OQ); };
  const auto low = _mm512_kunpackw(above(1), above(0)), high = _mm512_kunpackw(above(3), above(2));
  return __builtin_popcountll(_mm512_kunpackd(high, low));
}
#else
typedef Ints Count;

SAFECF_INLINE Count count_block(const Vec (&scores)[kVectors], Vec limit) {
  return -(scores[0] > limit);  // true is -1
}
#endif

#if defined(__AVX512F__)
// The first lanes, `count` of them or all.
SAFECF_INLINE __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>(count >= kLanes ? 0xFFFFu : (1u << max_of(count, 0)) - 1);
}
#endif

// Up to kCompared scores from the i-th on, filled up with minus infinity, which is above nothing.
SAFECF_INLINE void load_rest(View<const float> scores, int64_t i, Vec (&block)[kVectors]) {
  SAFECF_UNROLL
  for (int v = 0; v < kVectors; ++v, i += kLanes) {
    block[v] = splat(-__builtin_inff());
#if defined(__AVX512F__)
    block[v] = _mm512_mask_loadu_ps(block[v], first_lanes(scores.size - i), scores.data + i);
#else
    for (int64_t lane = 0; lane < min_of(kLanes, scores.size - i); ++lane)
      block[v][lane] = scores[i + lane];
#endif
  }
}

template <int kCount>
inline void count_group(View<const float> scores, View<const float> thresholds,
                        View<int32_t> counts) {
  Vec limits[kCount], block[kVectors];
  Count found[kCount] = {};
  SAFECF_UNROLL
  for (int j = 0; j < kCount; ++j) limits[j] = splat(thresholds[j]);
  int64_t i = 0;
  for (; i + kCompared <= scores.size; i += kCompared) {
    SAFECF_UNROLL
    for (int v = 0; v < kVectors; ++v) block[v] = load(scores, i + v * kLanes);
    SAFECF_UNROLL
    for (int j = 0; j < kCount; ++j) found[j] += count_block(block, limits[j]);
  }
  if (i < scores.size) {
    load_rest(scores, i, block);
    SAFECF_UNROLL
    for (int j = 0; j < kCount; ++j) found[j] += count_block(block, limits[j]);
  }
  SAFECF_UNROLL
  for (int j = 0; j < kCount; ++j) counts[j] += sum(found[j]);
}

// A group of thresholds at a time.
inline void count_groups(View<const float> scores, View<const float> thresholds,
                         View<int32_t> counts) {
  constexpr decltype(&count_group<1>) kGroups[] = {
      count_group<1>, count_group<2>, count_group<3>, count_group<4>,
#if defined(__AVX512F__)
      count_group<5>, count_group<6>, count_group<7>, count_group<8>,
#endif
  };
  for (int64_t j = 0; j < thresholds.size; j += kThresholds) {
    const int64_t group = min_of(kThresholds, thresholds.size - j);
    kGroups[group - 1](scores, thresholds.slice(j, group), counts.slice(j, group));
  }
}

// So few scores that they stay in registers.
inline void count_few_scores(View<const float> scores, View<const float> thresholds,
                             View<int32_t> counts) {
  Vec block[kVectors];
  load_rest(scores, 0, block);
  for (int64_t j = 0; j < thresholds.size; ++j)
    counts[j] += sum(count_block(block, splat(thresholds[j])));
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
  const __mmask16 rest = first_lanes(scores.size - i);
  const Vec score = _mm512_maskz_loadu_ps(rest, scores.data + i);
  const auto bits = static_cast<__mmask16>(rest & lanes_above(score, threshold));
  const auto others = static_cast<__mmask16>(rest & ~bits);
  const int64_t found = __builtin_popcount(bits);
  _mm512_mask_storeu_ps(above.data + up, first_lanes(found), _mm512_maskz_compress_ps(bits, score));
  _mm512_mask_storeu_ps(scores.data + i - up, first_lanes(scores.size - i - found),
                        _mm512_maskz_compress_ps(others, score));
  return up + found;
#else
  for (; i < scores.size; ++i) {
    const float score = scores[i];
    above[up] = score;
    scores[i - up] = score;
    up += score > threshold;
  }
  return up;
#endif
}

// Few scores or thresholds are compared, all with all. Many thresholds are halved: the scores above
// the middle one are above all before it, and the others above none behind it.
inline void count_above_each(View<float> scores, View<const float> thresholds, View<int32_t> counts,
                             View<float> spare) {
  SAFECF_ASSERT(thresholds.size == counts.size && scores.size <= spare.size);
  if (scores.size <= kCompared) return count_few_scores(scores, thresholds, counts);
  if (thresholds.size <= kFewThresholds) return count_groups(scores, thresholds, counts);
  const int64_t middle = thresholds.size / 2;
  const int64_t up = split(scores, thresholds[middle], spare), down = scores.size - up;
  for (int64_t j = 0; j <= middle; ++j) counts[j] += static_cast<int32_t>(up);
  count_above_each(spare.slice(0, up), thresholds.from(middle + 1), counts.from(middle + 1),
                   scores.from(down));
  count_above_each(scores.slice(0, down), thresholds.slice(0, middle), counts.slice(0, middle),
                   spare);
}

// The number of scores that equal the value.
inline int64_t count_equal(View<const float> scores, float value) {
  Ints found = {};
  int64_t i = 0;
  for (; i + kLanes <= scores.size; i += kLanes) found -= load(scores, i) == splat(value);
  int64_t total = sum(found);
  for (; i < scores.size; ++i) total += scores[i] == value;
  return total;
}

}  // namespace
