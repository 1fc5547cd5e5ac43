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
  Gathered rotated;
  const float* values;  // `factors` eigenvalues
  const float* basis;   // factors x factors, eigenvectors in columns; null: all factors are in it
  int64_t factors;
};

// ( gram_weight_r G + sum_j p_rj y_j y_j' + ridge_r I ) x_r = sum_j p_rj y_j
struct Rows {
  Csr matrix;
  const float* row_weight;
  const float* col_weight;
  const float* gram_weight;
  const float* ridge;

  // p_rj of the matrix's entry `entry`, which is in row `row`
  float pair(int64_t row, int64_t entry) const {
    const float weight = matrix.weights ? matrix.weights[entry] : 1.0f;
    return row_weight[row] * col_weight[matrix.columns[entry]] * weight;
  }
};

struct Solution {
  float* factors;  // rows x factors, in and out
  float* change;   // |x_new - x_old|^2
  float* norm;     // |x_new|^2
};

inline int64_t padded_width(int64_t factors) { return (factors + kPad - 1) / kPad * kPad; }
inline int64_t rough_width(int64_t factors) {
  return (factors + kRoughPad - 1) / kRoughPad * kRoughPad;
}

// Both return the first row that could not be solved, or -1.
int64_t solve_rows_cg(const Kernels&, const Execution&, const Rows&, const Fixed&, const CgOptions&,
                      Solution);
int64_t solve_rows_exact(const Kernels&, const Execution&, const Rows&, const Fixed&, Solution);

// gradients_r = ( gram_weight_r G + sum_j p_rj y_j y_j' + ridge_r I ) x_r - sum_j p_rj y_j
void gradients(const Kernels&, const Execution&, const Rows&, const Fixed&, const float* factors,
               float* gradients);

// losses_r = pair_weight_r/2 sum_j c_rj (1 - x_r.y_j)^2 + 1/2 x_r' G x_r
void losses(const Kernels&, const Execution&, const Csr&, const float* pair_weight, const Fixed&,
            const float* factors, float* losses);

// The fixed side of a block update: its block of coordinates in the eigenbasis of G's diagonal
// block, and the block's columns of G in that basis.
struct FixedBlock {
  Fixed side;
  const float* gram;  // factors x side.factors
};

// Solves every row for the coordinates from `first` on, given the others, and updates the scores
// of the matrix's entries: entry e has its score at positions[e], or at e where positions is null.
// `out` reports on the block alone. Returns the first row that could not be solved, or -1.
int64_t update_block(const Kernels&, const Execution&, const Rows&, const FixedBlock&,
                     int64_t first, int64_t factors, Solution out, float* scores,
                     const uint32_t* positions);

// scores_e = x_r.y_j for every entry e = (r, j) of the matrix; rows of `width` floats, padded.
void scores(const Kernels&, const Execution&, const Csr&, const float* factors, const float* others,
            int64_t width, float* scores);

// The losses, given the scores of the matrix's entries and G, gram_size x gram_size.
void scored_losses(const Kernels&, const Execution&, const Csr&, const float* pair_weight,
                   const float* scores, const float* factors, int64_t width, const float* gram,
                   int64_t gram_size, float* losses);

// gram = F' diag(weight) F, factors x factors; weight may be null for ones.
void gram(const Kernels&, const Execution&, const float* rows, int64_t count, int64_t factors,
          const float* weight, float* gram);

// Its columns [first, first + size), factors x size.
void gram_block(const Kernels&, const Execution&, const float* rows, int64_t count, int64_t factors,
                const float* weight, int64_t first, int64_t size, float* gram);

// out = F_block basis, with F_block the columns [first, first + size) of F; rows of `width` floats,
// padded with zeros. `out` may be F itself.
void rotate(const Kernels&, const Execution&, const float* rows, int64_t count, int64_t factors,
            int64_t first, int64_t size, const float* basis, float* out, int64_t width);

// The rows, rough, padded with zeros to rough_width(factors) numbers.
void roughen(const Kernels&, const Execution&, const float* rows, int64_t count, int64_t factors,
             uint32_t* rough);

// What topk must leave out: columns per row, and columns for every row, both in ascending order.
struct Excluded {
  const int64_t* offsets;  // null: none
  const int32_t* columns;
  const int32_t* everywhere;
  int64_t everywhere_count;
};

// Queries up to which packing the items for topk would take longer than it saves.
constexpr int64_t kFewQueries = 16;

// The rows that topk chooses from. The last two make up a sketch, which tells most items from the
// best without a look at them.
struct Items {
  const float* rows;
  int64_t count, factors;
  const uint32_t* rough = nullptr;  // the rows, rough; null: no sketch
  float longest = 0.0f;             // the largest norm of a row
};

// The k best columns of queries items' per row, best first, ties by index; ids are padded with -1
// and scores with -FLT_MAX. A sketch makes this faster for few queries and changes no bit.
void topk(const Kernels&, const Execution&, const float* queries, int64_t query_count, const Items&,
          int64_t k, const Excluded&, int32_t* ids, float* scores);

// The transpose of a matrix with `columns` columns; `weights` is null exactly when the matrix has
// none. Entries of a row come out in ascending order.
void transpose(const Csr&, int64_t columns, int64_t* offsets, int32_t* indices, float* weights);

// Where the entries of the transpose, in its order, stand in the matrix.
void positions(const Csr&, int64_t columns, uint32_t* positions);

}  // namespace safecf
