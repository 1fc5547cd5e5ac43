// Vectors of the instruction set that is being compiled for, and what the kernels do with them.
//
// Everything here has internal linkage and nothing includes the C++ library: this header is
// compiled once per instruction set, and a template instantiated with AVX-512 must never be the
// copy that the linker keeps for a plain CPU.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "view.hpp"
#if defined(__SSE__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

// Loops over the lanes or the rows of a group live in registers only when they are unrolled.
#define SAFECF_UNROLL _Pragma("GCC unroll 16")

// Of functions whose loops need all registers: inlined, they would share them with their callers.
#define SAFECF_NOINLINE __attribute__((noinline))

// Four numbers out of two quads; GCC knows Clang's name for it from version 12 on.
#if defined(__clang__)
#define SAFECF_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SAFECF_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, QuadPlaces{__VA_ARGS__})
#endif

namespace {

using safecf::MatrixView;
using safecf::View;

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
typedef int32_t QuadPlaces __attribute__((vector_size(16)));
typedef float UnalignedQuad __attribute__((vector_size(16), aligned(4), may_alias));

SAFECF_INLINE Vec load(const float* p) { return *reinterpret_cast<const UnalignedVec*>(p); }
SAFECF_INLINE void store(float* p, Vec v) { *reinterpret_cast<UnalignedVec*>(p) = v; }
SAFECF_INLINE Vec load(View<const float> x, int64_t i) { return load(x.slice(i, kLanes).data); }
SAFECF_INLINE void store(View<float> x, int64_t i, Vec v) { store(x.slice(i, kLanes).data, v); }
SAFECF_INLINE Quad load_quad(const float* p) { return *reinterpret_cast<const UnalignedQuad*>(p); }
SAFECF_INLINE void store_quad(float* p, Quad v) { *reinterpret_cast<UnalignedQuad*>(p) = v; }
SAFECF_INLINE Vec splat(float x) { return x - Vec{}; }

// a b + c, rounded once where the CPU can. Compilers decide anew for every a * b + c; sums that
// have to agree to the last bit are written with this.
SAFECF_INLINE Vec fused(float a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(splat(a), b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(splat(a), b, c);
#elif defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
  return (Vec)vfmaq_n_f32((float32x4_t)c, (float32x4_t)b, a);
#else
  return a * b + c;
#endif
}

// bfloat16: the sign, the exponent and 7 bits of the mantissa of a float, two numbers per word. The
// lower one is shifted into place. The upper one is read as it stands, with the lower one's bits
// behind its own, which `to_pair` has allowed for.
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef uint32_t UnalignedWords __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

SAFECF_INLINE Words load(const uint32_t* p) { return *reinterpret_cast<const UnalignedWords*>(p); }
SAFECF_INLINE Vec lower(Words pairs) { return reinterpret_cast<Vec>(pairs << 16); }
SAFECF_INLINE Vec upper(Words pairs) { return reinterpret_cast<Vec>(pairs); }

// The word whose numbers are nearest to these: relative errors of 2^-8 at most. Subnormal numbers
// count as zero, and so does an upper zero with bits behind it: see `ZeroSubnormals`.
SAFECF_INLINE uint32_t to_pair(float low, float high) {
  const uint32_t low_bits = __builtin_bit_cast(uint32_t, low);
  const uint32_t lower = (low_bits + 0x7FFFu + (low_bits >> 16 & 1u)) >> 16;
  const uint32_t bits = __builtin_bit_cast(uint32_t, high), size = bits & 0x7FFFFFFFu;
  const uint32_t upper = size < 0x00800000u ? 0u : (size - lower + 0x8000u) & 0xFFFF0000u;
  return (bits & 0x80000000u) | upper | lower;
}

// While it lives, subnormal numbers are zero in this thread; x86 is slow on them.
class ZeroSubnormals {
 public:
  ZeroSubnormals(const ZeroSubnormals&) = delete;
#if defined(__SSE__)
  ZeroSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040u); }
  ~ZeroSubnormals() { _mm_setcsr(before_); }

 private:
  const unsigned before_;
#else
  ZeroSubnormals() {}
#endif
};

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

// Bit i is set where lane i exceeds the threshold; NaN does not.
SAFECF_INLINE uint32_t lanes_above(Vec v, float threshold) {
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

// sum_i a_i b_i
SAFECF_INLINE float dot(View<const float> a, View<const float> b) {
  SAFECF_ASSERT(a.size == b.size);
  const int64_t size = a.size;
  Vec even = {}, odd = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
    even += load(a, i) * load(b, i);
    odd += load(a, i + kLanes) * load(b, i + kLanes);
  }
  for (; i + kLanes <= size; i += kLanes) even += load(a, i) * load(b, i);
  float total = sum(even + odd);
  for (; i < size; ++i) total += a[i] * b[i];
  return total;
}

// y += scale x
SAFECF_INLINE void axpy(float scale, View<const float> x, View<float> y) {
  SAFECF_ASSERT(x.size == y.size);
  const int64_t size = x.size;
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) store(y, i, load(y, i) + scale * load(x, i));
  for (; i < size; ++i) y[i] += scale * x[i];
}

// to[j * to_stride + i] = rows[i][j] for i, j < 4
SAFECF_INLINE void transpose_quad(const float* const (&rows)[4], float* to, int64_t to_stride) {
  const Quad a0 = load_quad(rows[0]), a1 = load_quad(rows[1]);
  const Quad a2 = load_quad(rows[2]), a3 = load_quad(rows[3]);
  const Quad low01 = SAFECF_SHUFFLE(a0, a1, 0, 4, 1, 5);
  const Quad high01 = SAFECF_SHUFFLE(a0, a1, 2, 6, 3, 7);
  const Quad low23 = SAFECF_SHUFFLE(a2, a3, 0, 4, 1, 5);
  const Quad high23 = SAFECF_SHUFFLE(a2, a3, 2, 6, 3, 7);
  store_quad(to, SAFECF_SHUFFLE(low01, low23, 0, 1, 4, 5));
  store_quad(to + to_stride, SAFECF_SHUFFLE(low01, low23, 2, 3, 6, 7));
  store_quad(to + 2 * to_stride, SAFECF_SHUFFLE(high01, high23, 0, 1, 4, 5));
  store_quad(to + 3 * to_stride, SAFECF_SHUFFLE(high01, high23, 2, 3, 6, 7));
}

// to_ji = from_ij
SAFECF_INLINE void transpose(MatrixView<const float> from, MatrixView<float> to) {
  SAFECF_ASSERT(to.rows == from.columns && to.columns == from.rows);
  const int64_t whole_rows = from.rows / 4 * 4, whole_columns = from.columns / 4 * 4;
  for (int64_t i = 0; i < whole_rows; i += 4)
    for (int64_t j = 0; j < whole_columns; j += 4) {
      const float* const corner = from.data + i * from.stride + j;
      const float* const rows[4] = {corner, corner + from.stride, corner + 2 * from.stride,
                                    corner + 3 * from.stride};
      transpose_quad(rows, to.data + j * to.stride + i, to.stride);
    }
  for (int64_t i = 0; i < from.rows; ++i)
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < from.columns; ++j)
      to(j, i) = from(i, j);
}

// The numbers 0 to kLanes - 1 as template arguments.
template <int... lanes>
struct Lanes {};
#if defined(__AVX512F__)
using AllLanes = Lanes<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>;
#elif defined(__AVX__)
using AllLanes = Lanes<0, 1, 2, 3, 4, 5, 6, 7>;
#else
using AllLanes = Lanes<0, 1, 2, 3>;
#endif

// A two by two transpose of blocks of kStep lanes: (a0 a1; b0 b1) becomes (a0 b0; a1 b1).
template <int kStep, int... lanes>
SAFECF_INLINE void swap_blocks(Vec& a, Vec& b, Lanes<lanes...>) {
#if defined(__clang__)
  const Vec first =
      __builtin_shufflevector(a, b, (lanes & kStep ? kLanes + lanes - kStep : lanes)...);
  b = __builtin_shufflevector(a, b, (lanes & kStep ? kLanes + lanes : lanes + kStep)...);
#else
  typedef int32_t Places __attribute__((vector_size(4 * kLanes)));
  const Vec first =
      __builtin_shuffle(a, b, Places{(lanes & kStep ? kLanes + lanes - kStep : lanes)...});
  b = __builtin_shuffle(a, b, Places{(lanes & kStep ? kLanes + lanes : lanes + kStep)...});
#endif
  a = first;
}

// Transposes a square of vectors in registers.
template <int kStep = kLanes / 2>
SAFECF_INLINE void transpose(Vec (&rows)[kLanes]) {
  SAFECF_UNROLL
  for (int i = 0; i < kLanes; ++i)
    if ((i & kStep) == 0) swap_blocks<kStep>(rows[i], rows[i + kStep], AllLanes());
  if constexpr (kStep > 1) transpose<kStep / 2>(rows);
}

// The sums of the lanes of four vectors, always in the same order.
SAFECF_INLINE Quad sums(Vec a, Vec b, Vec c, Vec d) {
  swap_blocks<1>(a, b, AllLanes());
  swap_blocks<1>(c, d, AllLanes());
  Vec left = a + b, right = c + d;
  swap_blocks<2>(left, right, AllLanes());
  union {
    Vec whole;
    Quad quads[kLanes / 4];
  } parts = {left + right};
  Quad total = parts.quads[0];
  SAFECF_UNROLL
  for (int i = 1; i < kLanes / 4; ++i) total += parts.quads[i];
  return total;
}

SAFECF_INLINE void fill(View<float> x, float value) {
  for (int64_t i = 0; i < x.size; ++i) x.data[i] = value;
}

SAFECF_INLINE bool is_finite(float x) { return x - x == 0.0f; }
SAFECF_INLINE int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
SAFECF_INLINE int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
SAFECF_INLINE int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

}  // namespace
