// Vectors of the instruction set that is being compiled for, and what the kernels do with them.
//
// Everything here has internal linkage and nothing includes the C++ library: this header is
// compiled once per instruction set, and a template instantiated with AVX-512 must never be the
// copy that the linker keeps for a plain CPU.
#pragma once

#include <stddef.h>
#include <stdint.h>
#if defined(__AVX__)
#include <immintrin.h>
#endif

// Loops over the lanes or the rows of a group live in registers only when they are unrolled.
#define SAFECF_UNROLL _Pragma("GCC unroll 16")
#define SAFECF_INLINE inline __attribute__((always_inline))

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef float UnalignedVec __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef float Quad __attribute__((vector_size(16)));

SAFECF_INLINE Vec load(const float* p) { return *reinterpret_cast<const UnalignedVec*>(p); }
SAFECF_INLINE void store(float* p, Vec v) { *reinterpret_cast<UnalignedVec*>(p) = v; }
SAFECF_INLINE Vec splat(float x) { return x - Vec{}; }

// Half precision: 1 bit of sign, 5 of exponent, 10 of mantissa. Only storage knows it.
#if defined(__AVX512F__)
SAFECF_INLINE Vec load(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
#elif defined(__F16C__)
SAFECF_INLINE Vec load(const uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
#else
SAFECF_INLINE Vec load(const uint16_t* p) {
  // the exponent's bias differs by 112; as a product, that is right for small numbers too
  typedef uint32_t Bits __attribute__((vector_size(4 * kLanes)));
  Bits half;
  for (int i = 0; i < kLanes; ++i) half[i] = p[i];
  const Vec size = reinterpret_cast<Vec>((half & 0x7FFFu) << 13) * 0x1p112f;
  return reinterpret_cast<Vec>(reinterpret_cast<Bits>(size) | (half & 0x8000u) << 16);
}
#endif

// The nearest number; the largest one, 65504, for all that are larger.
SAFECF_INLINE uint16_t to_half(float x) {
  x = x > 65504.0f ? 65504.0f : x < -65504.0f ? -65504.0f : x;
#if defined(__F16C__)
  return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
#else
  const uint32_t bits = __builtin_bit_cast(uint32_t, x), sign = bits >> 16 & 0x8000u;
  const float size = __builtin_bit_cast(float, bits & 0x7FFFFFFFu);
  if (size < 0x1p-14f)  // subnormal: multiples of 2^-24; adding 0.5 rounds to them
    return static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, size + 0.5f) - 0x3F000000u));
  const uint32_t magnitude = bits & 0x7FFFFFFFu, odd = magnitude >> 13 & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
#endif
}

// The sum of the lanes, always in the same order.
SAFECF_INLINE float sum(Vec v) {
  union {
    Vec whole;
    Quad quads[kLanes / 4];
  } parts = {v};
  Quad total = parts.quads[0];
  SAFECF_UNROLL
  for (int i = 1; i < kLanes / 4; ++i) total += parts.quads[i];
  return (total[0] + total[2]) + (total[1] + total[3]);
}

// Bit i: lane i exceeds the threshold, which NaN does not.
SAFECF_INLINE uint32_t above(Vec v, float threshold) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(v, splat(threshold), _CMP_GT_OQ);
#elif defined(__AVX__)
  return static_cast<uint32_t>(_mm256_movemask_ps(v > threshold));
#else
  const auto lanes = v > threshold;
  uint32_t bits = 0;
  SAFECF_UNROLL
  for (int i = 0; i < kLanes; ++i) bits |= static_cast<uint32_t>(lanes[i] & 1) << i;
  return bits;
#endif
}

SAFECF_INLINE float dot(const float* a, const float* b, int64_t width) {
  Vec even = {}, odd = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    even += load(a + i) * load(b + i);
    odd += load(a + i + kLanes) * load(b + i + kLanes);
  }
  for (; i + kLanes <= width; i += kLanes) even += load(a + i) * load(b + i);
  float total = sum(even + odd);
  for (; i < width; ++i) total += a[i] * b[i];
  return total;
}

SAFECF_INLINE void axpy(float scale, const float* x, float* y, int64_t width) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) store(y + i, load(y + i) + scale * load(x + i));
  for (; i < width; ++i) y[i] += scale * x[i];
}

inline void fill(float* x, float value, int64_t width) {
  for (int64_t i = 0; i < width; ++i) x[i] = value;
}

inline bool is_finite(float x) { return x - x == 0.0f; }
inline int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

}  // namespace
