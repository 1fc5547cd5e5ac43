// Passes over gathered rows of factors: the inner loops of training.
//
// Rows are taken `kGroup` at a time, so that the vectors which all rows share (the direction, the
// sums) are read and written once per group.
#pragma once

#include "kernels.hpp"
#include "simd.hpp"

namespace {

constexpr int kGroup = 4;
constexpr int64_t kAhead = 8;  // rows between a prefetch and its use
constexpr int64_t kLine = 64;  // bytes

// How rows are stored: one number per element, or two.
template <class Value>
struct Stored;
template <>
struct Stored<float> {
  static constexpr int kNumbers = 1;
  static const float* rows(const safecf::Gathered& fixed) { return fixed.single; }
};
template <>
struct Stored<uint32_t> {
  static constexpr int kNumbers = 2;
  static const uint32_t* rows(const safecf::Gathered& fixed) { return fixed.rough; }
};

// N vectors of a row, from coordinate i on.
template <int N>
struct Some {
  static constexpr int kCount = N;
  Vec v[N];
};
template <int N>
SAFECF_INLINE Some<N> some(const float* row, int64_t i) {
  Some<N> found;
  SAFECF_UNROLL
  for (int n = 0; n < N; ++n) found.v[n] = load(row + i + n * kLanes);
  return found;
}
template <int N>
SAFECF_INLINE Some<N> some(const uint32_t* row, int64_t i) {
  static_assert(N == 2);
  const Words pairs = load(row + i / 2);
  return {{lower(pairs), upper(pairs)}};
}
template <int N>
SAFECF_INLINE void put(float* row, int64_t i, const Some<N>& what) {
  SAFECF_UNROLL
  for (int n = 0; n < N; ++n) store(row + i + n * kLanes, what.v[n]);
}

// Calls body(i, Some<N>) for the coordinates i of a row, N vectors at a time: two, and one that may
// be left over.
template <class Value, class Body>
SAFECF_INLINE void for_coordinates(int64_t width, Body body) {
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) body(i, Some<2>());
  if constexpr (Stored<Value>::kNumbers == 1)
    if (i < width) body(i, Some<1>());
}

template <class Value>
struct Group {
  const Value* rows[kGroup];
};

// scores_g = y_g . x for the rows of a group, while the rows of the `next` one are fetched.
template <class Value>
SAFECF_INLINE void scores_of(const Group<Value>& y, const Group<Value>& next, const float* x,
                             int64_t width, float* scores) {
  constexpr int64_t kStep = 2 * kLanes / Stored<Value>::kNumbers;  // elements
  Vec total[kGroup][2] = {};
  for_coordinates<Value>(width, [&](int64_t i, auto kind) SAFECF_ALWAYS {
    constexpr int N = decltype(kind)::kCount;
    const auto x_i = some<N>(x, i);
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) {
      SAFECF_UNROLL
      for (int64_t e = 0; e < kStep; e += kLine / 4)
        __builtin_prefetch(next.rows[g] + i / Stored<Value>::kNumbers + e);
      const auto y_i = some<N>(y.rows[g], i);
      SAFECF_UNROLL
      for (int n = 0; n < N; ++n) total[g][n] += y_i.v[n] * x_i.v[n];
    }
  });
  SAFECF_UNROLL
  for (int g = 0; g < kGroup; ++g) scores[g] = sum(total[g][0] + total[g][1]);
}

// Calls body(group, next, weights) for all rows, the last group filled up with rows of weight zero;
// the rows of `next` are kAhead rows on.
template <class Value, class Body>
SAFECF_INLINE void for_groups(const Value* fixed, int64_t width, const int32_t* columns,
                              const float* weights, int64_t count, Body body) {
  const int64_t stride = width / Stored<Value>::kNumbers;
  for (int64_t j = 0; j < count; j += kGroup) {
    Group<Value> group, next;
    float weight[kGroup];
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) {
      const bool inside = j + g < count;
      group.rows[g] = fixed + columns[inside ? j + g : j] * stride;
      next.rows[g] = fixed + columns[min_of(j + g + kAhead, count - 1)] * stride;
      weight[g] = inside ? (weights ? weights[j + g] : 1.0f) : 0.0f;
    }
    body(group, next, weight);
  }
}

// sum += sum_g weight_g y_g
template <class Value>
SAFECF_INLINE void add_group(const Group<Value>& y, const float* weight, int64_t width,
                             float* sum) {
  for_coordinates<Value>(width, [&](int64_t i, auto kind) SAFECF_ALWAYS {
    constexpr int N = decltype(kind)::kCount;
    auto total = some<N>(sum, i);
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) {
      const auto y_i = some<N>(y.rows[g], i);
      SAFECF_UNROLL
      for (int n = 0; n < N; ++n) total.v[n] += weight[g] * y_i.v[n];
    }
    put(sum, i, total);
  });
}

// image += sum_j p_j (y_j . x - target) y_j
template <class Value>
inline void apply_pairs(const safecf::RowSystem& a, const float* x, float target, float* image) {
  const int64_t width = a.fixed.width;
  for_groups(Stored<Value>::rows(a.fixed), width, a.columns, a.pairs, a.count,
             [&](const Group<Value>& y, const Group<Value>& next, const float* p) SAFECF_ALWAYS {
               float c[kGroup];
               scores_of(y, next, x, width, c);
               SAFECF_UNROLL
               for (int g = 0; g < kGroup; ++g) c[g] = p[g] * (c[g] - target);
               add_group(y, c, width, image);
             });
}

// out = (diag(shared) + sum_j p_j y_j y_j') x - sum_j p_j y_j
inline void gradient_of(const safecf::RowSystem& a, const float* x, float* out) {
  for (int64_t i = 0; i < a.fixed.width; i += kLanes)
    store(out + i, load(a.shared + i) * load(x + i));
  apply_pairs<float>(a, x, 1.0f, out);
}

// The fused first pass: b += sum_j p_j y_j, residual += sum_j p_j (1 - y_j.x) y_j and
// diagonal += sum_j p_j y_j^2, from one read of the rows.
template <class Value>
inline void first_pass(const safecf::RowSystem& a, const float* x, float* b, float* residual,
                       float* diagonal) {
  const int64_t width = a.fixed.width;
  for_groups(Stored<Value>::rows(a.fixed), width, a.columns, a.pairs, a.count,
             [&](const Group<Value>& y, const Group<Value>& next, const float* p) SAFECF_ALWAYS {
               float c[kGroup];
               scores_of(y, next, x, width, c);
               SAFECF_UNROLL
               for (int g = 0; g < kGroup; ++g) c[g] = p[g] * (1.0f - c[g]);
               for_coordinates<Value>(width, [&](int64_t i, auto kind) SAFECF_ALWAYS {
                 constexpr int N = decltype(kind)::kCount;
                 auto b_i = some<N>(b, i), r_i = some<N>(residual, i), m_i = some<N>(diagonal, i);
                 SAFECF_UNROLL
                 for (int g = 0; g < kGroup; ++g) {
                   const auto y_i = some<N>(y.rows[g], i);
                   SAFECF_UNROLL
                   for (int n = 0; n < N; ++n) {
                     const Vec py = p[g] * y_i.v[n];
                     b_i.v[n] += py;
                     r_i.v[n] += c[g] * y_i.v[n];
                     m_i.v[n] += py * y_i.v[n];
                   }
                 }
                 put(b, i, b_i);
                 put(residual, i, r_i);
                 put(diagonal, i, m_i);
               });
             });
}

// sum += sum_j weight_j y_j
inline void add_rows(const float* fixed, int64_t width, const int32_t* columns, const float* weight,
                     int64_t count, float* sum) {
  for_groups(fixed, width, columns, weight, count,
             [&](const Group<float>& y, const Group<float>& next, const float* w) SAFECF_ALWAYS {
               for (const float* row : next.rows)
                 for (int64_t i = 0; i < width; i += kLine / 4) __builtin_prefetch(row + i);
               add_group(y, w, width, sum);
             });
}

// scores_j = x.y_j
inline void gather_scores(const float* fixed, int64_t width, const int32_t* columns, int64_t count,
                          const float* x, float* scores) {
  int64_t j = 0;
  for_groups(fixed, width, columns, nullptr, count,
             [&](const Group<float>& y, const Group<float>& next, const float*) SAFECF_ALWAYS {
               float found[kGroup];
               scores_of(y, next, x, width, found);
               for (int g = 0; g < kGroup && j < count; ++g) scores[j++] = found[g];
             });
}

// sum_j weight_j (1 - x.y_j)^2
template <class Value>
inline float missed_by(const safecf::Gathered& fixed, const int32_t* columns, const float* weight,
                       int64_t count, const float* x) {
  double total = 0;
  for_groups(Stored<Value>::rows(fixed), fixed.width, columns, weight, count,
             [&](const Group<Value>& y, const Group<Value>& next, const float* w) SAFECF_ALWAYS {
               float scores[kGroup];
               scores_of(y, next, x, fixed.width, scores);
               SAFECF_UNROLL
               for (int g = 0; g < kGroup; ++g)
                 total += w[g] * (1.0f - scores[g]) * (1.0f - scores[g]);
             });
  return static_cast<float>(total);
}

}  // namespace
