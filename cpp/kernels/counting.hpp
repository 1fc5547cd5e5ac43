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

// The first `count` numbers, filled up with minus infinity, which is above nothing.
SAFECF_INLINE Vec load_first(const float* p, int64_t count) {
  Vec out = splat(-__builtin_inff());
#if defined(__AVX512F__)
  const uint32_t lanes = count >= kLanes ? 0xFFFFu : count > 0 ? (1u << count) - 1 : 0;
  return _mm512_mask_loadu_ps(out, static_cast<__mmask16>(lanes), p);
#else
  for (int64_t i = 0; i < count; ++i) out[i] = p[i];
  return out;
#endif
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
    SAFECF_UNROLL
    for (int v = 0; v < kVectors; ++v, i += kLanes)
      block[v] = load_first(scores.data + i, scores.size - i);
    SAFECF_UNROLL
    for (int j = 0; j < kCount; ++j) found[j] += count_block(block, limits[j]);
  }
  SAFECF_UNROLL
  for (int j = 0; j < kCount; ++j) counts[j] += sum(found[j]);
}

// A group of thresholds at a time.
inline void count_groups(View<const float> scores, View<const float> thresholds,
                         View<int32_t> counts) {
  for (int64_t j = 0; j < thresholds.size;) {
    const int64_t left = thresholds.size - j;
    const int group = left >= kThresholds ? kThresholds : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    const auto run = group == 8   ? count_group<8>
                     : group == 4 ? count_group<4>
                     : group == 2 ? count_group<2>
                                  : count_group<1>;
    run(scores, thresholds.slice(j, group), counts.slice(j, group));
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

// Many thresholds are halved, unless there is but a block of scores: the scores above the middle
// one are above all before it, and the others above none behind it.
inline void count_above_each(View<float> scores, View<const float> thresholds, View<int32_t> counts,
                             View<float> spare) {
  SAFECF_ASSERT(thresholds.size == counts.size && scores.size <= spare.size);
  if (thresholds.size <= kFewThresholds || scores.size <= kCompared)
    return count_groups(scores, thresholds, counts);
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
