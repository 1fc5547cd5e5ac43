// The native functions on arrays: parallel, with the same bits for any number of threads.
//
// They throw std::invalid_argument where sizes do not fit, where an output overlaps another array,
// and where an index is out of range. Whatever the arrays hold, also if another thread overwrites
// them during the call, no memory but theirs is read or written.
#pragma once

#include <cstdint>

#include "parallel.hpp"
#include "records.hpp"

namespace safecf {

// Solves every row in place. Returns the first row that could not be solved, or -1.
int64_t solve_rows(const Rows&, const Fixed&, const RowSolver&, const SolverOptions&,
                   MatrixView<float> factors, const Report&, const Execution&);

// gradients_r = ( gram_weight_r G + sum_j p_rj y_j y_j' + ridge_r I ) x_r - sum_j p_rj y_j
void gradients(const Rows&, const Fixed&, MatrixView<const float> factors,
               MatrixView<float> gradients, const Execution&);

// losses_r = pair_weight_r/2 sum_j c_rj (1 - x_r.y_j)^2 + 1/2 x_r' G x_r + ridge_r/2 |x_r|^2
// An empty ridge means none.
void losses(const Csr&, View<const float> pair_weight, View<const float> ridge, const Fixed&,
            MatrixView<const float> factors, View<float> losses, const Execution&);

// The fixed side of a block update: the coordinates from `first` on, in the eigenbasis of G's
// diagonal block, and the block's columns of G in that basis.
struct FixedBlock {
  Fixed side;
  MatrixView<const float> gram;
  int64_t first;
};

// The scores of a matrix's entries: entry e has its score at positions[e], or at e without.
struct Scores {
  View<float> values;
  View<const uint32_t> positions;

  // Copies the positions of these entries into `room`; returns an empty view without positions.
  // Throws std::invalid_argument where one is not among the values.
  View<const uint32_t> read_positions(const Entries&, View<uint32_t> room, const Kernels&) const;
};

// Solves every row for a block of coordinates, given the others, and updates factors and scores.
// The report is on the block alone. Returns the first row that could not be solved, or -1.
int64_t update_block(const Rows&, const FixedBlock&, MatrixView<float> factors, const Report&,
                     const Scores&, const Execution&);

// scores_e = x_r.y_j for every entry e = (r, j) of the matrix; rows are padded.
void scores(const Csr&, MatrixView<const float> factors, MatrixView<const float> others,
            View<float> scores, const Execution&);

// The losses, given the scores of the matrix's entries and G; rows of factors are padded.
void scored_losses(const Csr&, View<const float> pair_weight, View<const float> ridge,
                   View<const float> scores, MatrixView<const float> factors,
                   MatrixView<const float> gram, View<float> losses, const Execution&);

// gram = F' diag(weight) F; without a weight it is ones. Rough products are good to 2^-16.
void gram(MatrixView<const float> factors, View<const float> weight, MatrixView<float> gram,
          const Execution&, bool rough = false);

// Its columns from `first` on.
void gram_block(MatrixView<const float> factors, View<const float> weight, int64_t first,
                MatrixView<float> gram, const Execution&);

// rotated = F_block basis, F_block being the columns of F from `first` on; rows are padded with
// zeros. `rotated` may be F itself. Rough products are good to 2^-16.
void rotate(MatrixView<const float> factors, int64_t first, MatrixView<const float> basis,
            MatrixView<float> rotated, const Execution&, bool rough = false);

// gram = basis diag(values) basis', values ascending; of the symmetric gram, the lower triangle is
// read.
void eigen(MatrixView<const double> gram, View<double> values, MatrixView<double> basis,
           const Execution&);

// The rows in bfloat16, padded with zeros to bfloat16_width numbers.
void to_bfloat16(MatrixView<const float> factors, MatrixView<uint32_t> words, const Execution&);

// The transpose, entries of a row in ascending order. It has weights exactly when the matrix does.
struct MutableCsr {
  View<int64_t> offsets;
  View<int32_t> columns;
  View<float> weights;
};
void transpose(const Csr&, const MutableCsr& transposed);

// Where the entries of the transpose, in its order, stand in the matrix.
void positions(const Csr&, int64_t num_columns, View<uint32_t> positions);

// The quantile step's sums. Blocks of users are added in order.
LossSummary loss_summary(const Losses&, const Execution&);
QuantileSums quantile_sums(const Losses&, const QuantilePoint&, const Execution&);
void kernel_weights(View<const double> losses, const QuantilePoint&, View<double> weights,
                    const Execution&);

}  // namespace safecf
