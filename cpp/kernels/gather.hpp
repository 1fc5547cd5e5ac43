// Passes over gathered rows of factors: the inner loops of training.
//
// Rows are taken `kGroup` at a time, so that the vectors which all rows share (the direction, the
// sums) are read and written once per group.
#pragma once

#include "simd.hpp"
#include "table.hpp"

namespace {

constexpr int kGroup = 4;
constexpr int64_t kPrefetchRows = 8;  // between a prefetch and its use
constexpr int64_t kLineFloats = safecf::kCacheLine / 4;

// How rows are stored: one number per element (float32) or two (bfloat16).
template <class Value>
struct Storage;
template <>
struct Storage<float> {
  static constexpr int kNumbers = 1;
  static SAFECF_INLINE MatrixView<const float> rows(const safecf::FixedRows& fixed) {
    return fixed.float32;
  }
};
template <>
struct Storage<uint32_t> {
  static constexpr int kNumbers = 2;
  static SAFECF_INLINE MatrixView<const uint32_t> rows(const safecf::FixedRows& fixed) {
    return fixed.bfloat16;
  }
};

// N vectors of a row, from coordinate i on.
template <int N>
struct Vectors {
  static constexpr int kCount = N;
  Vec v[N];
};
template <int N>
SAFECF_INLINE Vectors<N> load_vectors(const float* row, int64_t i) {
  Vectors<N> found;
  SAFECF_UNROLL
  for (int n = 0; n < N; ++n) found.v[n] = load(row + i + n * kLanes);
  return found;
}
template <int N>
SAFECF_INLINE Vectors<N> load_vectors(const uint32_t* row, int64_t i) {
  static_assert(N == 2);
  const Words pairs = load(row + i / 2);
  return {{lower(pairs), upper(pairs)}};
}
template <int N>
SAFECF_INLINE Vectors<N> load_vectors(View<const float> x, int64_t i) {
  return load_vectors<N>(x.slice(i, N * kLanes).data, 0);
}
template <int N>
SAFECF_INLINE void store_vectors(View<float> x, int64_t i, const Vectors<N>& values) {
  SAFECF_UNROLL
  for (int n = 0; n < N; ++n) store(x, i + n * kLanes, values.v[n]);
}

// Calls body(i, Vectors<N>) for the coordinates i of a row, N vectors at a time: two, and one that
// may be left over.
template <class Value, class Body>
SAFECF_INLINE void for_coordinates(int64_t width, Body body) {
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) body(i, Vectors<2>());
  if constexpr (Storage<Value>::kNumbers == 1)
    if (i < width) body(i, Vectors<1>());
}

template <class Value>
struct Group {
  const Value* rows[kGroup];
};

// scores_g = y_g . x for the rows of a group, while the rows of the `next` one are fetched.
template <class Value>
SAFECF_INLINE void group_scores(const Group<Value>& y, const Group<Value>& next,
                                View<const float> x, float* scores) {
  constexpr int64_t kStep = 2 * kLanes / Storage<Value>::kNumbers;  // elements
  Vec total[kGroup][2] = {};
  for_coordinates<Value>(x.size, [&](int64_t i, auto kind) SAFECF_ALWAYS {
    constexpr int N = decltype(kind)::kCount;
    const auto x_i = load_vectors<N>(x, i);
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) {
      SAFECF_UNROLL
      for (int64_t e = 0; e < kStep; e += kLineFloats)
        __builtin_prefetch(next.rows[g] + i / Storage<Value>::kNumbers + e);
      const auto y_i = load_vectors<N>(y.rows[g], i);
      SAFECF_UNROLL
      for (int n = 0; n < N; ++n) total[g][n] += y_i.v[n] * x_i.v[n];
    }
  });
  static_assert(kGroup == 4);
  store_quad(scores, sums(total[0][0] + total[0][1], total[1][0] + total[1][1],
                          total[2][0] + total[2][1], total[3][0] + total[3][1]));
}

// Calls body(group, next, weights) for all rows, the last group filled up with rows of weight zero;
// the rows of `next` are kPrefetchRows on. Without weights they are ones.
template <class Value, class Body>
SAFECF_INLINE void for_groups(MatrixView<const Value> fixed, View<const int32_t> columns,
                              View<const float> weights, Body body) {
  const int64_t count = columns.size;
  for (int64_t j = 0; j < count; j += kGroup) {
    Group<Value> group, next;
    float weight[kGroup];
    if (j + kGroup + kPrefetchRows <= count) {
      SAFECF_UNROLL
      for (int g = 0; g < kGroup; ++g) {
        group.rows[g] = fixed.row(columns[j + g]).data;
        next.rows[g] = fixed.row(columns[j + g + kPrefetchRows]).data;
        weight[g] = weights ? weights[j + g] : 1.0f;
      }
    } else {
      SAFECF_UNROLL
      for (int g = 0; g < kGroup; ++g) {
        const bool inside = j + g < count;
        group.rows[g] = fixed.row(columns[inside ? j + g : j]).data;
        next.rows[g] = fixed.row(columns[min_of(j + g + kPrefetchRows, count - 1)]).data;
        weight[g] = inside ? (weights ? weights[j + g] : 1.0f) : 0.0f;
      }
    }
    body(group, next, weight);
  }
}

// sum += sum_g weight_g y_g
template <class Value>
SAFECF_INLINE void add_group(const Group<Value>& y, const float* weight, View<float> sum) {
  for_coordinates<Value>(sum.size, [&](int64_t i, auto kind) SAFECF_ALWAYS {
    constexpr int N = decltype(kind)::kCount;
    auto total = load_vectors<N>(sum, i);
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) {
      const auto y_i = load_vectors<N>(y.rows[g], i);
      SAFECF_UNROLL
      for (int n = 0; n < N; ++n) total.v[n] += weight[g] * y_i.v[n];
    }
    store_vectors(sum, i, total);
  });
}

// image += sum_j p_j (y_j . x - target) y_j
template <class Value>
SAFECF_NOINLINE void apply_pairs(const safecf::RowSystem& a, View<const float> x, float target,
                                 View<float> image) {
  for_groups(Storage<Value>::rows(a.fixed), a.columns, a.pairs,
             [&](const Group<Value>& y, const Group<Value>& next, const float* p) SAFECF_ALWAYS {
               float c[kGroup];
               group_scores(y, next, x, c);
               SAFECF_UNROLL
               for (int g = 0; g < kGroup; ++g) c[g] = p[g] * (c[g] - target);
               add_group(y, c, image);
             });
}

// out = (diag(shared) + sum_j p_j y_j y_j') x - sum_j p_j y_j
inline void gradient(const safecf::RowSystem& a, View<const float> x, View<float> out) {
  for (int64_t i = 0; i < out.size; i += kLanes) store(out, i, load(a.shared, i) * load(x, i));
  apply_pairs<float>(a, x, 1.0f, out);
}

// b += sum_j p_j y_j, residual += sum_j p_j (1 - y_j.x) y_j and diagonal += sum_j p_j y_j^2, from
// one read of the rows.
template <class Value>
SAFECF_NOINLINE void first_pass(const safecf::RowSystem& a, View<const float> x, View<float> b,
                                View<float> residual, View<float> diagonal) {
  for_groups(Storage<Value>::rows(a.fixed), a.columns, a.pairs,
             [&](const Group<Value>& y, const Group<Value>& next, const float* p) SAFECF_ALWAYS {
               float c[kGroup];
               group_scores(y, next, x, c);
               SAFECF_UNROLL
               for (int g = 0; g < kGroup; ++g) c[g] = p[g] * (1.0f - c[g]);
               for_coordinates<Value>(x.size, [&](int64_t i, auto kind) SAFECF_ALWAYS {
                 constexpr int N = decltype(kind)::kCount;
                 auto b_i = load_vectors<N>(b, i), r_i = load_vectors<N>(residual, i);
                 auto m_i = load_vectors<N>(diagonal, i);
                 SAFECF_UNROLL
                 for (int g = 0; g < kGroup; ++g) {
                   const auto y_i = load_vectors<N>(y.rows[g], i);
                   SAFECF_UNROLL
                   for (int n = 0; n < N; ++n) {
                     const Vec py = p[g] * y_i.v[n];
                     b_i.v[n] += py;
                     r_i.v[n] += c[g] * y_i.v[n];
                     m_i.v[n] += py * y_i.v[n];
                   }
                 }
                 store_vectors(b, i, b_i);
                 store_vectors(residual, i, r_i);
                 store_vectors(diagonal, i, m_i);
               });
             });
}

// Every index is read once, which `volatile` sees to, and compared as it was read. The last vector
// overlaps the one before it: what is read twice is compared and written twice.
inline bool read_indices(View<const uint32_t> from, uint32_t limit, View<uint32_t> to) {
  SAFECF_ASSERT(from.size == to.size);
  const int64_t size = from.size;
  if (size < kLanes) {
    uint32_t beyond = 0;
    for (int64_t i = 0; i < size; ++i) {
      const uint32_t index = *static_cast<const volatile uint32_t*>(from.data + i);
      to[i] = index;
      beyond |= index >= limit;
    }
    return !beyond;
  }
  union {
    Words all;
    QuadPlaces quads[kLanes / 4];
  } beyond = {};
  for (int64_t i = 0; i < size; i += kLanes) {
    const int64_t at = min_of(i, size - kLanes);
    __builtin_prefetch(from.data + size + i);  // where the next row's indices are, mostly
    const Words indices = *reinterpret_cast<const volatile UnalignedWords*>(from.data + at);
    *reinterpret_cast<UnalignedWords*>(to.data + at) = indices;
    beyond.all |= reinterpret_cast<Words>(indices >= limit);
  }
  QuadPlaces any = beyond.quads[0];
  SAFECF_UNROLL
  for (int i = 1; i < kLanes / 4; ++i) any |= beyond.quads[i];
  return !(any[0] | any[1] | any[2] | any[3]);
}

// sum += sum_j weights_j y_j
inline void add_rows(MatrixView<const float> fixed, View<const int32_t> columns,
                     View<const float> weights, View<float> sum) {
  for_groups(fixed, columns, weights,
             [&](const Group<float>& y, const Group<float>& next, const float* w) SAFECF_ALWAYS {
               for (const float* row : next.rows)
                 for (int64_t i = 0; i < sum.size; i += kLineFloats) __builtin_prefetch(row + i);
               add_group(y, w, sum);
             });
}

// scores_j = x.y_j
inline void gather_scores(MatrixView<const float> fixed, View<const int32_t> columns,
                          View<const float> x, View<float> scores) {
  int64_t j = 0;
  for_groups(fixed, columns, {},
             [&](const Group<float>& y, const Group<float>& next, const float*) SAFECF_ALWAYS {
               float found[kGroup];
               group_scores(y, next, x, found);
               for (int g = 0; g < kGroup && j < scores.size; ++g) scores[j++] = found[g];
             });
}

// sum_j weights_j (1 - x.y_j)^2
template <class Value>
SAFECF_NOINLINE float squared_error(const safecf::FixedRows& fixed, View<const int32_t> columns,
                                    View<const float> weights, View<const float> x) {
  double total = 0;
  for_groups(Storage<Value>::rows(fixed), columns, weights,
             [&](const Group<Value>& y, const Group<Value>& next, const float* w) SAFECF_ALWAYS {
               float scores[kGroup];
               group_scores(y, next, x, scores);
               SAFECF_UNROLL
               for (int g = 0; g < kGroup; ++g)
                 total += w[g] * (1.0f - scores[g]) * (1.0f - scores[g]);
             });
  return static_cast<float>(total);
}

}  // namespace
