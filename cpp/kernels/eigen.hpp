// What the symmetric eigensolver computes on one thread, in double precision: matrix products,
// products with a symmetric matrix, and the sums of the secular equation.
#pragma once

#include "quantile.hpp"

namespace {

using safecf::PoleSums;
using safecf::Strided;

// C (rows x columns) from A packed kTall rows and B packed kWide columns at a time, kDeep deep.
constexpr int kTall = kLanes == 16 ? 12 : 6;
constexpr int kWide = 2 * kDoubles;
constexpr int64_t kDeep = 256;

inline int64_t product_scratch(int64_t columns) {
  return safecf::scratch<double>(kTall * kDeep) + safecf::scratch<double>(kTall * kWide) +
         safecf::scratch<double>(kDeep * round_up(columns, kWide));
}

// kTall rows of A at a time, inside them depth by row, filled up with zeros.
inline void pack_tall(Strided a, View<double> out) {
  for (int64_t first = 0; first < a.rows; first += kTall) {
    const View<double> group = out.slice(first * a.columns, kTall * a.columns);
    for (int64_t i = 0; i < kTall; ++i) {
      const double* const row = a.data + (first + i) * a.row_stride;
      for (int64_t k = 0; k < a.columns; ++k)
        group[k * kTall + i] = first + i < a.rows ? row[k * a.column_stride] : 0.0;
    }
  }
}

// Panels of kWide columns, inside them depth by column, filled up with zeros.
inline void pack_wide(MatrixView<const double> b, View<double> out) {
  for (int64_t j = 0; j < b.columns; j += kWide) {
    const int64_t wide = min_of(kWide, b.columns - j);
    const View<double> panel = out.slice(j * b.rows, b.rows * kWide);
    for (int64_t k = 0; k < b.rows; ++k)
      for (int64_t i = 0; i < kWide; ++i) panel[k * kWide + i] = i < wide ? b(k, j + i) : 0.0;
  }
}

template <Write kWrite>
SAFECF_INLINE void put(View<double> row, int64_t at, Double product) {
  if constexpr (kWrite == Write::kSet)
    store(row, at, product);
  else if constexpr (kWrite == Write::kAdd)
    store(row, at, load(row, at) + product);
  else
    store(row, at, load(row, at) - product);
}

// A tile of C from packed rows of A and a panel of B.
template <Write kWrite>
inline void double_tile(View<const double> rows, View<const double> panel, MatrixView<double> c) {
  SAFECF_ASSERT(rows.size * kWide == panel.size * kTall);
  const double* a = rows.data;
  const double* b = panel.data;
  Double left[kTall] = {}, right[kTall] = {};
  for (; a < rows.end(); a += kTall, b += kWide) {
    const Double b0 = *reinterpret_cast<const UnalignedDouble*>(b);
    const Double b1 = *reinterpret_cast<const UnalignedDouble*>(b + kDoubles);
    SAFECF_UNROLL
    for (int i = 0; i < kTall; ++i) {
      left[i] += a[i] * b0;
      right[i] += a[i] * b1;
    }
  }
  SAFECF_UNROLL
  for (int i = 0; i < kTall; ++i) {
    put<kWrite>(c.row(i), 0, left[i]);
    put<kWrite>(c.row(i), kDoubles, right[i]);
  }
}

template <Write kWrite>
inline void double_product(Strided a, MatrixView<const double> b, MatrixView<double> c,
                           safecf::Arena arena) {
  const auto rows = arena.take<double>(kTall * kDeep).slice(0, kTall * b.rows);
  const auto edge = arena.take<double>(kTall, kWide);
  const auto panels = arena.take<double>(b.rows * round_up(b.columns, kWide));
  pack_wide(b, panels);
  for (int64_t i = 0; i < c.rows; i += kTall) {
    const int64_t tall = min_of(kTall, c.rows - i);
    pack_tall({a.data + i * a.row_stride, tall, a.columns, a.row_stride, a.column_stride}, rows);
    for (int64_t j = 0; j < c.columns; j += kWide) {
      const int64_t wide = min_of(kWide, c.columns - j);
      const auto panel = panels.slice(j * b.rows, b.rows * kWide);
      const auto part = c.rows_from(i, tall).columns_from(j, wide);
      if (tall == kTall && wide == kWide) {
        double_tile<kWrite>(rows, panel, part);
        continue;
      }
      for (int64_t p = 0; p < kTall; ++p)
        for (int64_t q = 0; q < kWide; ++q) edge(p, q) = p < tall && q < wide ? part(p, q) : 0.0;
      double_tile<kWrite>(rows, panel, edge);
      for (int64_t p = 0; p < tall; ++p)
        for (int64_t q = 0; q < wide; ++q) part(p, q) = edge(p, q);
    }
  }
}

inline void product(Strided a, MatrixView<const double> b, Write write, MatrixView<double> c,
                    safecf::Arena arena) {
  SAFECF_ASSERT(a.rows == c.rows && a.columns == b.rows && b.columns == c.columns);
  for (int64_t k = 0; k < b.rows; k += kDeep) {
    const int64_t chunk = min_of(kDeep, b.rows - k);
    const Write now = write == Write::kSet && k > 0 ? Write::kAdd : write;
    const auto run = now == Write::kSet   ? double_product<Write::kSet>
                     : now == Write::kAdd ? double_product<Write::kAdd>
                                          : double_product<Write::kSubtract>;
    run({a.data + k * a.column_stride, a.rows, chunk, a.row_stride, a.column_stride},
        b.rows_from(k, chunk), c, arena);
  }
}

template <Write kWrite>
inline void multiply_groups(View<const double> left, MatrixView<const double> b,
                            MatrixView<double> c) {
  const View<const double> panel(b.data, b.rows * kWide);
  for (int64_t i = 0; i < c.rows; i += kTall)
    double_tile<kWrite>(left.slice(i * b.rows, kTall * b.rows), panel, c.rows_from(i, kTall));
}

// The same of a packed A, kWide columns and whole groups of kTall rows.
inline void multiply_panel(View<const double> left, MatrixView<const double> b, Write write,
                           MatrixView<double> c) {
  SAFECF_ASSERT(left.size == c.rows * b.rows && c.rows % kTall == 0);
  SAFECF_ASSERT(b.columns == kWide && b.stride == kWide && c.columns == kWide);
  const auto run = write == Write::kSet   ? multiply_groups<Write::kSet>
                   : write == Write::kAdd ? multiply_groups<Write::kAdd>
                                          : multiply_groups<Write::kSubtract>;
  run(left, b, c);
}

// sums_r = rows_r . x
inline void row_products(MatrixView<const double> rows, View<const double> x, View<double> sums) {
  SAFECF_ASSERT(rows.rows == sums.size && rows.columns == x.size);
  for (int64_t r = 0; r < rows.rows; ++r) {
    const View<const double> row = rows.row(r);
    Double even = {}, odd = {};
    int64_t i = 0;
    for (; i + 2 * kDoubles <= x.size; i += 2 * kDoubles) {
      even += load(row, i) * load(x, i);
      odd += load(row, i + kDoubles) * load(x, i + kDoubles);
    }
    double total = sum(even + odd);
    for (; i < x.size; ++i) total += row[i] * x[i];
    sums[r] = total;
  }
}

// x -= sum_r scales_r rows_r
inline void subtract_rows(MatrixView<const double> rows, View<const double> scales,
                          View<double> x) {
  SAFECF_ASSERT(rows.rows == scales.size && rows.columns == x.size);
  int64_t i = 0;
  for (; i + kDoubles <= x.size; i += kDoubles) {
    Double total = load(x, i);
    for (int64_t r = 0; r < rows.rows; ++r) total -= scales[r] * load(rows.row(r), i);
    store(x, i, total);
  }
  for (; i < x.size; ++i)
    for (int64_t r = 0; r < rows.rows; ++r) x[i] -= scales[r] * rows(r, i);
}

// Rows of the triangle that one sweep reads.
constexpr int kSweep = kLanes == 16 ? 8 : 4;

template <int kCount>
inline void add_symmetric(MatrixView<const double> a, int64_t first, View<const double> x,
                          View<double> y) {
  Double sums[kCount] = {};
  double scales[kCount], tails[kCount] = {};
  SAFECF_UNROLL
  for (int r = 0; r < kCount; ++r) scales[r] = x[first + r];
  int64_t i = 0;
  for (; i + kDoubles <= first; i += kDoubles) {
    const Double at = load(x, i);
    Double total = load(y, i);
    SAFECF_UNROLL
    for (int r = 0; r < kCount; ++r) {
      const Double value = load(a.row(first + r), i);
      sums[r] += value * at;
      total += scales[r] * value;
    }
    store(y, i, total);
  }
  for (int r = 0; r < kCount; ++r) {
    const View<const double> row = a.row(first + r);
    for (int64_t j = i; j < first + r; ++j) {
      tails[r] += row[j] * x[j];
      y[j] += scales[r] * row[j];
    }
    y[first + r] += sum(sums[r]) + tails[r] + row[first + r] * scales[r];
  }
}

// y += the part of A x that rows [first, last) of A's lower triangle make; A is symmetric.
inline void symmetric_product(MatrixView<const double> a, int64_t first, int64_t last,
                              View<const double> x, View<double> y) {
  SAFECF_ASSERT(last <= a.rows && last <= x.size && last <= y.size);
  int64_t r = first;
  for (; r + kSweep <= last; r += kSweep) add_symmetric<kSweep>(a, r, x, y);
  for (; r < last; ++r) add_symmetric<1>(a, r, x, y);
}

// sum_i w_i / (p_i - x) and sum_i w_i / (p_i - x)^2, with p_i - x = (poles_i - origin) - shift
inline PoleSums pole_sums(View<const double> poles, View<const double> weights, double origin,
                          double shift) {
  SAFECF_ASSERT(poles.size == weights.size);
  Double value = {}, slope = {};
  int64_t i = 0;
  for (; i + kDoubles <= poles.size; i += kDoubles) {
    const Double distance = (load(poles, i) - origin) - shift;
    const Double term = load(weights, i) / distance;
    value += term;
    slope += term / distance;
  }
  PoleSums total = {sum(value), sum(slope)};
  for (; i < poles.size; ++i) {
    const double distance = (poles[i] - origin) - shift, term = weights[i] / distance;
    total.value += term;
    total.slope += term / distance;
  }
  return total;
}

}  // namespace
