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

template <class Value>
SAFECF_INLINE void prefetch_row(const Value* row, int64_t width) {
  constexpr int64_t kLine = 64 / sizeof(Value);
  for (int64_t i = 0; i < width; i += kLine) __builtin_prefetch(row + i);
}

template <class Value>
struct Group {
  const Value* rows[kGroup];
};

template <class Value>
SAFECF_INLINE const Value* rows_of(const safecf::Gathered& fixed);
template <>
SAFECF_INLINE const float* rows_of<float>(const safecf::Gathered& fixed) {
  return fixed.single;
}
template <>
SAFECF_INLINE const uint16_t* rows_of<uint16_t>(const safecf::Gathered& fixed) {
  return fixed.half;
}

// scores_g = y_g . x for the rows of a group.
template <class Value>
SAFECF_INLINE void scores_of(const Group<Value>& y, const float* x, int64_t width, float* scores) {
  Vec even[kGroup] = {}, odd[kGroup] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    const Vec x0 = load(x + i), x1 = load(x + i + kLanes);
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) {
      even[g] += load(y.rows[g] + i) * x0;
      odd[g] += load(y.rows[g] + i + kLanes) * x1;
    }
  }
  for (; i < width; i += kLanes) {
    const Vec x0 = load(x + i);
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) even[g] += load(y.rows[g] + i) * x0;
  }
  SAFECF_UNROLL
  for (int g = 0; g < kGroup; ++g) scores[g] = sum(even[g] + odd[g]);
}

// Calls body(group, weights) for all rows, the last group filled up with rows of weight zero.
template <bool kPrefetch, class Value, class Body>
SAFECF_INLINE void for_groups(const Value* fixed, int64_t width, const int32_t* columns,
                              const float* weights, int64_t count, Body body) {
  for (int64_t j = 0; j < count; j += kGroup) {
    if (kPrefetch) {
      for (int64_t t = j + kAhead; t < min_of(j + kAhead + kGroup, count); ++t)
        prefetch_row(fixed + columns[t] * width, width);
    }
    Group<Value> group;
    float weight[kGroup];
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) {
      const bool inside = j + g < count;
      group.rows[g] = fixed + columns[inside ? j + g : j] * width;
      weight[g] = inside ? (weights ? weights[j + g] : 1.0f) : 0.0f;
    }
    body(group, weight);
  }
}

// image += sum_j p_j (y_j . x - target) y_j
template <class Value, bool kPrefetch>
inline void apply_pairs(const safecf::RowSystem& a, const float* x, float target, float* image) {
  for_groups<kPrefetch>(rows_of<Value>(a.fixed), a.fixed.width, a.columns, a.pairs, a.count,
                        [&](const Group<Value>& y, const float* p) {
                          float c[kGroup];
                          scores_of(y, x, a.fixed.width, c);
                          SAFECF_UNROLL
                          for (int g = 0; g < kGroup; ++g) c[g] = p[g] * (c[g] - target);
                          for (int64_t i = 0; i < a.fixed.width; i += kLanes) {
                            Vec total = load(image + i);
                            SAFECF_UNROLL
                            for (int g = 0; g < kGroup; ++g) total += c[g] * load(y.rows[g] + i);
                            store(image + i, total);
                          }
                        });
}

// out = (diag(shared) + sum_j p_j y_j y_j') x - sum_j p_j y_j
template <class Value>
inline void gradient_of(const safecf::RowSystem& a, const float* x, float* out) {
  for (int64_t i = 0; i < a.fixed.width; i += kLanes)
    store(out + i, load(a.shared + i) * load(x + i));
  apply_pairs<Value, true>(a, x, 1.0f, out);
}

// The fused first pass: b += sum_j p_j y_j, residual += sum_j p_j (1 - y_j.x) y_j and
// diagonal += sum_j p_j y_j^2, from one read of the rows.
template <class Value>
inline void first_pass(const safecf::RowSystem& a, const float* x, float* b, float* residual,
                       float* diagonal) {
  for_groups<true>(rows_of<Value>(a.fixed), a.fixed.width, a.columns, a.pairs, a.count,
                   [&](const Group<Value>& y, const float* p) {
                     float c[kGroup];
                     scores_of(y, x, a.fixed.width, c);
                     SAFECF_UNROLL
                     for (int g = 0; g < kGroup; ++g) c[g] = p[g] * (1.0f - c[g]);
                     for (int64_t i = 0; i < a.fixed.width; i += kLanes) {
                       Vec b_i = load(b + i), r_i = load(residual + i), m_i = load(diagonal + i);
                       SAFECF_UNROLL
                       for (int g = 0; g < kGroup; ++g) {
                         const Vec y_i = load(y.rows[g] + i), py_i = p[g] * y_i;
                         b_i += py_i;
                         r_i += c[g] * y_i;
                         m_i += py_i * y_i;
                       }
                       store(b + i, b_i);
                       store(residual + i, r_i);
                       store(diagonal + i, m_i);
                     }
                   });
}

// sum += sum_j weight_j y_j
inline void add_rows(const float* fixed, int64_t width, const int32_t* columns, const float* weight,
                     int64_t count, float* sum) {
  for_groups<true>(fixed, width, columns, weight, count,
                   [&](const Group<float>& y, const float* w) {
                     for (int64_t i = 0; i < width; i += kLanes) {
                       Vec total = load(sum + i);
                       SAFECF_UNROLL
                       for (int g = 0; g < kGroup; ++g) total += w[g] * load(y.rows[g] + i);
                       store(sum + i, total);
                     }
                   });
}

// scores_j = x.y_j
inline void gather_scores(const float* fixed, int64_t width, const int32_t* columns, int64_t count,
                          const float* x, float* scores) {
  int64_t j = 0;
  for_groups<true>(fixed, width, columns, nullptr, count, [&](const Group<float>& y, const float*) {
    float found[kGroup];
    scores_of(y, x, width, found);
    for (int g = 0; g < kGroup && j < count; ++g) scores[j++] = found[g];
  });
}

// sum_j weight_j (1 - x.y_j)^2
template <class Value>
inline float missed_by(const safecf::Gathered& fixed, const int32_t* columns, const float* weight,
                       int64_t count, const float* x) {
  double total = 0;
  for_groups<true>(rows_of<Value>(fixed), fixed.width, columns, weight, count,
                   [&](const Group<Value>& y, const float* w) {
                     float scores[kGroup];
                     scores_of(y, x, fixed.width, scores);
                     SAFECF_UNROLL
                     for (int g = 0; g < kGroup; ++g)
                       total += w[g] * (1.0f - scores[g]) * (1.0f - scores[g]);
                   });
  return static_cast<float>(total);
}

}  // namespace
