// The native verbs: pure functions on arrays, parallel over rows.
#pragma once

#include <cstdint>

#include "kernels.hpp"
#include "parallel.hpp"

namespace safecf {

// A sparse matrix by rows. `weights` is null when all entries are one. Offsets are 64-bit.
struct Csr {
  const int64_t* offsets;
  const int32_t* columns;
  const float* weights;
  int64_t rows;

  int64_t begin(int64_t row) const { return offsets[row]; }
  int64_t length(int64_t row) const { return offsets[row + 1] - offsets[row]; }
};

// The fixed side of a half-step in the eigenbasis of G = basis diag(values) basis'.
struct Fixed {
  const float* rotated;  // rows of `width` floats
  const float* values;   // `factors` eigenvalues
  const float* basis;    // factors x factors, eigenvectors in columns
  int64_t factors;
  int64_t width;
};

// ( gram_weight_r G + sum_j p_rj y_j y_j' + ridge_r I ) x_r = sum_j p_rj y_j
struct Rows {
  Csr matrix;
  const float* row_weight;
  const float* col_weight;
  const float* gram_weight;
  const float* ridge;
};

struct Solution {
  float* factors;  // rows x factors, in and out
  float* change;   // |x_new - x_old|^2
  float* norm;     // |x_new|^2
};

inline int64_t padded_width(int64_t factors) { return (factors + kPad - 1) / kPad * kPad; }

// Both return the first row that could not be solved, or -1.
int64_t solve_rows_cg(const Kernels&, const Execution&, const Rows&, const Fixed&, const CgOptions&,
                      Solution);
int64_t solve_rows_exact(const Kernels&, const Execution&, const Rows&, const Fixed&, Solution);

// losses_r = pair_weight_r/2 sum_j c_rj (1 - x_r.y_j)^2 + 1/2 x_r' G x_r
void losses(const Kernels&, const Execution&, const Csr&, const float* pair_weight, const Fixed&,
            const float* factors, float* losses);

// gram = F' diag(weight) F, factors x factors; weight may be null for ones.
void gram(const Kernels&, const Execution&, const float* rows, int64_t count, int64_t factors,
          const float* weight, float* gram);

// rotated = F basis, rows padded to padded_width(factors).
void rotate(const Kernels&, const Execution&, const float* rows, int64_t count, int64_t factors,
            const float* basis, float* rotated);

// What topk must leave out: columns per row, and columns for every row, both in ascending order.
struct Excluded {
  const int64_t* offsets;  // null: none
  const int32_t* columns;
  const int32_t* everywhere;
  int64_t everywhere_count;
};

// The k best columns of queries items' per row, best first, ties by index; ids are padded with -1
// and scores with -FLT_MAX.
void topk(const Kernels&, const Execution&, const float* queries, int64_t query_count,
          const float* items, int64_t item_count, int64_t factors, int64_t k, const Excluded&,
          int32_t* ids, float* scores);

// The transpose of a matrix with `columns` columns; `weights` is null exactly when the matrix has
// none. Entries of a row come out in ascending order.
void transpose(const Csr&, int64_t columns, int64_t* offsets, int32_t* indices, float* weights);

}  // namespace safecf
