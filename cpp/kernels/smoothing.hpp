// Smoothing kernels in double precision: K(t), k(t) and E|t + Z|, Z ~ k, for a vector of t.
//
// They follow the formulas of `als/kernels.py` and hold for any t, infinite ones and NaN included.
#pragma once

#include "simd.hpp"
#include "table.hpp"

namespace {

constexpr int kDoubles = kLanes / 2;

typedef double Double __attribute__((vector_size(8 * kDoubles)));
typedef int64_t Long __attribute__((vector_size(8 * kDoubles)));
typedef double UnalignedDouble __attribute__((vector_size(8 * kDoubles), aligned(8), may_alias));

SAFECF_INLINE Double load(View<const double> x, int64_t i) {
  return *reinterpret_cast<const UnalignedDouble*>(x.slice(i, kDoubles).data);
}
SAFECF_INLINE void store(View<double> x, int64_t i, Double v) {
  *reinterpret_cast<UnalignedDouble*>(x.slice(i, kDoubles).data) = v;
}
SAFECF_INLINE Double splat(double x) { return x - Double{}; }
SAFECF_INLINE Double absolute(Double x) {
  return reinterpret_cast<Double>(reinterpret_cast<Long>(x) & INT64_MAX);
}
SAFECF_INLINE Double choose(Long condition, Double yes, Double no) {
  return reinterpret_cast<Double>((reinterpret_cast<Long>(yes) & condition) |
                                  (reinterpret_cast<Long>(no) & ~condition));
}
SAFECF_INLINE Double at_most(Double x, double bound) { return choose(x > bound, splat(bound), x); }
SAFECF_INLINE Double clip(Double x, double low, double high) {
  return at_most(choose(x < low, splat(low), x), high);
}

// The nearest multiple of `unit`, a power of two, for |x| < 2^51 unit.
SAFECF_INLINE Double round_to(Double x, double unit) {
  const double magic = 0x1.8p52 * unit;
  return (x + magic) - magic;
}

// 2^n for whole numbers in the range of normal exponents.
SAFECF_INLINE Double power_of_two(Double n) {
  const Long whole = reinterpret_cast<Long>(n + 0x1.8p52);  // n in its lowest bits
  return reinterpret_cast<Double>((whole + 1023) << 52);
}

// exp(high + low), -1490 < high + low <= 0. The part `high` is a multiple of 2^-20 or so, and
// nothing is lost of `low`: x = n log 2 + r, exp(x) = 2^n exp(r), with Taylor's series.
SAFECF_INLINE Double exp_sum(Double high, Double low) {
  constexpr double kLog2High = 0x1.62e42fefap-1, kLog2Low = 0x1.cf79abc9e3b3ap-40;
  constexpr double kSeries[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                                1.0 / 120,        1.0 / 24,        1.0 / 6,        1.0 / 2};
  const Double n = round_to((high + low) * 0x1.71547652b82fep0, 1.0);
  const Double r = ((high - n * kLog2High) + low) - n * kLog2Low;
  Double p = splat(kSeries[0]);
  SAFECF_UNROLL
  for (int i = 1; i < 12; ++i) p = p * r + kSeries[i];
  const Double half = round_to(0.5 * n, 1.0);  // two steps, as 2^n may be subnormal
  return (1.0 + (r + r * r * p)) * power_of_two(half) * power_of_two(n - half);
}

// log(1 + e) = 2 atanh(s), s = e / (2 + e), for 0 <= e <= 1
SAFECF_INLINE Double log1p_unit(Double e) {
  const Double s = e / (2.0 + e), z = s * s;
  Double p = splat(1.0 / 33);
  SAFECF_UNROLL
  for (int i = 31; i >= 3; i -= 2) p = p * z + 1.0 / i;
  return 2.0 * (s + s * z * p);
}

struct Smoothed {
  Double cdf, density, absolute;
};

// k(t) = exp(-t^2 / 2) / sqrt(2 pi). The tail K(-x) = exp(-x^2 / 2) f(y) / (x + 5), with
// y = (x - 5) / (x + 5), has a smooth f: a polynomial of degree 23 fits it to 3e-16.
SAFECF_INLINE Smoothed gaussian(Double t) {
  constexpr double kTail[] = {
      -1.331210743010702e-10,  -7.854458583247658e-10, 1.2713759260278231e-09,
      9.275082241537343e-09,   -6.940847374044867e-09, -6.741689051823604e-08,
      3.8571448567257587e-08,  4.3347664285137567e-07, -3.335427141231054e-07,
      -2.7688787836720915e-06, 3.979361513829216e-06,  1.6680852719925394e-05,
      -4.9762327924579515e-05, -5.937558833377767e-05, 0.0005448989683735629,
      -0.0007978694277475297,  -0.002993376758978478,  0.02079506680323404,
      -0.06911863870707162,    0.16502036617019517,    -0.3135331566712814,
      0.4953056159699805,      -0.665382502890057,     0.769193049750063};
  const Double x = absolute(t), inside = at_most(x, 39.0);  // k(39) is zero
  // the square of a rounded x is exact: x^2 = near^2 + (x - near) (x + near)
  const Double near = round_to(inside, 0x1p-6);
  const Double e = exp_sum(-0.5 * near * near, -0.5 * (inside - near) * (inside + near));
  const Double inverse = 1.0 / (x + 5.0), y = 1.0 - 10.0 * inverse;
  Double f = splat(kTail[0]);
  SAFECF_UNROLL
  for (int i = 1; i < 24; ++i) f = f * y + kTail[i];
  const Double tail = e * f * inverse, density = e * 0x1.9884533d43651p-2;  // 1 / sqrt(2 pi)
  return {choose(t < 0.0, tail, 1.0 - tail), density, 2.0 * density + x * (1.0 - 2.0 * tail)};
}

// K(t) = 1 / (1 + exp(-t)), k(t) = K(t) K(-t), E|t + Z| = |t| + 2 log(1 + exp(-|t|))
SAFECF_INLINE Smoothed logistic(Double t) {
  const Double x = absolute(t), near = round_to(at_most(x, 800.0), 0x1p-6);
  const Double e = exp_sum(-near, near - at_most(x, 800.0)), above = 1.0 / (1.0 + e);
  return {choose(t < 0.0, e * above, above), e * above * above, x + 2.0 * log1p_unit(e)};
}

// On [-1, 1]: k(t) = 3/4 (1 - t^2), K(t) = (1 + t)^2 (2 - t) / 4,
// E|t + Z| = 3/8 + 3/4 t^2 - 1/8 t^4
SAFECF_INLINE Smoothed epanechnikov(Double t) {
  const Double c = clip(t, -1.0, 1.0), square = c * c;
  const Double inside = 0.375 + 0.75 * square - 0.125 * square * square;
  return {(1.0 + c) * (1.0 + c) * (2.0 - c) * 0.25, 0.75 * (1.0 - square),
          choose(t == c, inside, absolute(t))};
}

// On [-1, 1]: k(t) = 1/2, K(t) = (1 + t) / 2, E|t + Z| = (1 + t^2) / 2
SAFECF_INLINE Smoothed uniform(Double t) {
  const Double c = clip(t, -1.0, 1.0);
  return {(1.0 + c) * 0.5, choose(t == c, splat(0.5), Double{}),
          choose(t == c, (1.0 + c * c) * 0.5, absolute(t))};
}

// On [-1, 1]: k(t) = 1 - |t|, K(-|t|) = (1 - |t|)^2 / 2, E|t + Z| = 1/3 + t^2 - |t|^3 / 3
SAFECF_INLINE Smoothed triangular(Double t) {
  const Double x = absolute(t), c = at_most(x, 1.0), tail = (1.0 - c) * (1.0 - c) * 0.5;
  const Double inside = 1.0 / 3 + c * c - c * c * c * (1.0 / 3);
  return {choose(t < 0.0, tail, 1.0 - tail), 1.0 - c, choose(x == c, inside, x)};
}

// Calls body(smoothed), where smoothed(t) is that of the kernel.
template <class Body>
SAFECF_INLINE auto with_smoothing(safecf::Smoothing kernel, Body body) {
  switch (kernel) {
    case safecf::Smoothing::kGaussian:
      return body([](Double t) SAFECF_ALWAYS { return gaussian(t); });
    case safecf::Smoothing::kEpanechnikov:
      return body([](Double t) SAFECF_ALWAYS { return epanechnikov(t); });
    case safecf::Smoothing::kLogistic:
      return body([](Double t) SAFECF_ALWAYS { return logistic(t); });
    case safecf::Smoothing::kUniform:
      return body([](Double t) SAFECF_ALWAYS { return uniform(t); });
    default:
      return body([](Double t) SAFECF_ALWAYS { return triangular(t); });
  }
}

}  // namespace
