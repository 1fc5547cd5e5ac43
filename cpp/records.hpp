// What the core's functions take: the fixed side of a half-step, its rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "csr.hpp"
#include "kernels/table.hpp"

namespace safecf {

// The fixed side of a half-step in the eigenbasis of G = basis diag(values) basis'.
struct Fixed {
  FixedRows rotated;
  View<const float> values;       // eigenvalues
  MatrixView<const float> basis;  // eigenvectors in columns; without, both sides are rotated

  int64_t factors() const { return values.size; }
  // What the columns of a matrix name.
  Side side() const { return {"the fixed side", rotated.rows()}; }
};

// ( gram_weight_r G + sum_j p_rj y_j y_j' + ridge_r I ) x_r = sum_j p_rj y_j
struct Rows {
  Csr matrix;
  View<const float> row_weight;
  View<const float> col_weight;
  View<const float> gram_weight;
  View<const float> ridge;

  // p_rj of the matrix's entry `entry`, which is in this row and column
  float pair(int64_t row, int64_t column, int64_t entry) const {
    return row_weight[row] * col_weight[column] * matrix.weight(entry);
  }
};

// What a solver reports of each row: |x_new - x_old|^2 and |x_new|^2.
struct Report {
  View<float> change;
  View<float> norm;
};

inline void fill(View<float> x, float value) { std::fill_n(x.data, x.size, value); }

// to = from, padded with zeros
inline void copy_padded(View<const float> from, View<float> to) {
  std::copy_n(from.data, from.size, to.data);
  fill(to.from(from.size), 0.0f);
}

// to = from
inline void copy(MatrixView<const float> from, MatrixView<float> to) {
  SAFECF_ASSERT(from.rows == to.rows && from.columns == to.columns);
  if (from.stride == from.columns && to.stride == to.columns) {
    std::copy_n(from.data, from.rows * from.columns, to.data);
  } else {
    for (int64_t row = 0; row < from.rows; ++row)
      std::copy_n(from.row(row).data, from.columns, to.row(row).data);
  }
}
// Sets the columns from `first` on to zero.
inline void pad(MatrixView<float> matrix, int64_t first) {
  if (first == matrix.columns) return;
  for (int64_t row = 0; row < matrix.rows; ++row) fill(matrix.row(row).from(first), 0.0f);
}

inline int64_t round_up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }
inline int64_t padded_width(int64_t factors) { return round_up(factors, kPad); }
inline int64_t bfloat16_width(int64_t factors) { return round_up(factors, kBfloat16Pad); }

}  // namespace safecf
