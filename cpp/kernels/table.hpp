// The kernels of one instruction set, as a table of functions on arrays.
//
// `kernels.cpp` is compiled once per instruction set and fills one table each; `dispatch` picks
// the best one that the machine runs. Kernels are single-threaded and own no memory.
#pragma once

#include <stdint.h>

#include "arena.hpp"
#include "view.hpp"

namespace safecf {

// Rows of factors are padded with zeros to a multiple of this many numbers: a cache line.
constexpr int64_t kPad = 16;
constexpr int64_t kBfloat16Pad = 32;

// Rows of factors that kernels gather from, in float32 or in bfloat16: the other one has no data.
struct FixedRows {
  MatrixView<const float> float32;
  MatrixView<const uint32_t> bfloat16;  // two numbers per word, as `to_bfloat16` writes them

  // Numbers per row, padding included.
  SAFECF_INLINE int64_t width() const { return bfloat16 ? 2 * bfloat16.columns : float32.columns; }
  SAFECF_INLINE int64_t rows() const { return bfloat16 ? bfloat16.rows : float32.rows; }
};

// One row in the eigenbasis of G, where the shared part is diagonal:
//   ( diag(shared) + sum_j pairs_j y_j y_j' ) x = sum_j pairs_j y_j ,  y_j = fixed[columns_j].
struct RowSystem {
  FixedRows fixed;
  View<const int32_t> columns;
  View<const float> pairs;
  View<const float> shared;  // padded with ones
  int64_t factors;
};

// For solvers that iterate: they stop at |b - Ax| <= tolerance |b|.
struct SolverOptions {
  int max_iterations;
  float tolerance;
};

// A way to solve one row.
struct RowSolver {
  const char* name;
  bool warm;            // x is where it starts from
  bool takes_bfloat16;  // as well as float32

  // x = A^-1 b. False: not positive definite.
  bool (*solve)(const RowSystem&, const SolverOptions&, View<float> x, Arena);
  int64_t (*scratch)(int64_t factors, int64_t width, int64_t longest_row);
};

// The right operand of a product, diag(scale) B (depth x columns), in the kernels' panels.
struct PackedView {
  const float* data;
  int64_t depth, columns;
};

enum class Write { kSet, kAdd, kSubtract };

// A way to multiply matrices. Each element is summed in the same order wherever it stands.
struct Products {
  // Writes the panels [first, last) of diag(scale) B; without a scale it is ones. `out` holds
  // packed_size(depth, columns) floats.
  int64_t panel;  // columns of B per panel
  int64_t (*packed_size)(int64_t depth, int64_t columns);
  void (*pack)(Operand b, View<const float> scale, int64_t first, int64_t last, View<float> out);

  // C := or += or -= A B's columns from `first` on, a multiple of `panel`.
  void (*multiply)(Operand a, PackedView b, int64_t first, Write, MatrixView<float> c, Arena);
  int64_t multiply_scratch;

  // Lower triangle of C := or += or -= A diag(scale) A'; without a scale it is ones.
  void (*gram)(Operand a, View<const float> scale, Write, MatrixView<float> c, Arena);
  int64_t (*gram_scratch)(int64_t rows);
};

// Columns and their scores.
struct Candidates {
  View<float> scores;
  View<int32_t> columns;
};

enum class Smoothing { kGaussian, kEpanechnikov, kLogistic, kUniform, kTriangular };

// The losses of users, each of whom stands for counts_u of them: one where there are no counts.
struct Losses {
  View<const double> values;
  View<const double> counts;
};

// size = sum_u c_u, sum = sum_u c_u loss_u, the smallest and the largest loss
struct LossSummary {
  double size, sum, low, high;
};

struct QuantilePoint {
  Smoothing kernel;
  double bandwidth, tail, xi;
};

// With u = loss - xi and t = u / h:  sum c K(t), sum c k(t), the sum of the smoothed check function
// c [h/2 E|t + Z| + (1/2 - tail) u], Z ~ k, and sum c |u|.
struct QuantileSums {
  double weight, density, check, distance;
};

// A matrix of doubles with any strides.
struct Strided {
  const double* data;
  int64_t rows, columns, row_stride, column_stride;
};

// sum_i w_i / (p_i - x) and its derivative
struct PoleSums {
  double value, slope;
};

// Scratch sizes are in bytes.
struct Kernels {
  const char* name;

  View<const RowSolver> row_solvers;

  // x := A^-1 x for any right-hand side, by Cholesky, float32 only. False: not positive definite.
  bool (*solve_general)(const RowSystem&, View<float> x, Arena);
  int64_t (*exact_scratch)(int64_t factors, int64_t longest_row);

  // out = A x - b, float32 only
  void (*gradient)(const RowSystem&, View<const float> x, View<float> out);

  // Copies indices, whose memory may change meanwhile, into `to`, which is as long. Returns whether
  // all that were copied are below the limit.
  bool (*read_indices)(View<const uint32_t> from, uint32_t limit, View<uint32_t> to);

  // sum += sum_j weights_j y_j
  void (*add_rows)(MatrixView<const float> fixed, View<const int32_t> columns,
                   View<const float> weights, View<float> sum);

  // scores_j = x.y_j
  void (*gather_scores)(MatrixView<const float> fixed, View<const int32_t> columns,
                        View<const float> x, View<float> scores);

  // sum_j weights_j (1 - x.y_j)^2; without weights they are ones.
  float (*squared_error)(const FixedRows& fixed, View<const int32_t> columns,
                         View<const float> weights, View<const float> x);

  // sum_i a_i b_i c_i of padded rows
  float (*dot3)(View<const float> a, View<const float> b, View<const float> c);

  // sum_i x_i^2
  float (*squared_norm)(View<const float> x);

  // In float32; and, where the machine has something faster, with errors of 2^-16 in every product
  // of two numbers.
  Products products, rough_products;

  // Numbers, a multiple of kBfloat16Pad of them, as bfloat16 in pairs.
  void (*to_bfloat16)(View<const float> from, View<uint32_t> to);

  // scores_r = rows_r . query, the rows being those named by `columns`, or the first ones without.
  // The sums are those of `multiply`, bit for bit.
  void (*score_rows)(MatrixView<const float> rows, View<const int32_t> columns,
                     View<const float> query, View<float> scores);

  // scores_r = rows_r . query in another order, with rows in bfloat16 and a query padded like them.
  void (*bfloat16_scores)(MatrixView<const uint32_t> rows, View<const float> query,
                          View<float> scores);

  // Writes the scores above the threshold, in order, and returns their number; score i is that of
  // the column first + i.
  int64_t (*collect)(View<const float> scores, float threshold, int32_t first, Candidates out);

  // Raises the threshold, which all candidates exceed, so that k or a few more still do, ties
  // aside, and keeps those, in order; returns their number. There are at least k candidates.
  int64_t (*prune)(Candidates candidates, int64_t k, float* threshold);

  // The number of scores that equal the value.
  int64_t (*count_equal)(View<const float> scores, float value);

  // counts_j += the number of scores above thresholds_j, which ascend. The scores are overwritten,
  // as is `spare`, which is as long.
  void (*count_above_each)(View<float> scores, View<const float> thresholds, View<int32_t> counts,
                           View<float> spare);

  LossSummary (*loss_summary)(const Losses&);
  QuantileSums (*quantile_sums)(const Losses&, const QuantilePoint&);
  // out = K((loss - xi) / h)
  void (*kernel_weights)(View<const double> losses, const QuantilePoint&, View<double> out);

  // The eigensolver's, in double precision.
  // C := or += or -= A B
  void (*product)(Strided a, MatrixView<const double> b, Write, MatrixView<double> c, Arena);
  int64_t (*product_scratch)(int64_t columns);
  // The same of an A packed before, `tall` rows at a time, whole ones, and `wide` columns.
  int64_t tall, wide;
  void (*pack_tall)(Strided a, View<double> out);
  void (*multiply_panel)(View<const double> packed, MatrixView<const double> b, Write,
                         MatrixView<double> c);
  // sums_r = rows_r . x
  void (*row_products)(MatrixView<const double> rows, View<const double> x, View<double> sums);
  // x -= sum_r scales_r rows_r
  void (*subtract_rows)(MatrixView<const double> rows, View<const double> scales, View<double> x);
  // y += the part of A x that rows [first, last) of A's lower triangle make; A is symmetric.
  void (*symmetric_product)(MatrixView<const double> a, int64_t first, int64_t last,
                            View<const double> x, View<double> y);
  // The sums at x = origin + shift, accurate where poles are close to the origin.
  PoleSums (*pole_sums)(View<const double> poles, View<const double> weights, double origin,
                        double shift);
};

}  // namespace safecf
