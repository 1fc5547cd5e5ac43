// The kernels of one instruction set, as a table of functions on arrays.
//
// `kernels.cpp` is compiled once per instruction set and fills one table each; `dispatch` picks
// the best one that the machine runs. Kernels are single-threaded and own no memory.
#pragma once

#include <stdint.h>

namespace safecf {

// Rows of factors are padded with zeros to a multiple of this many floats, a cache line.
constexpr int64_t kPad = 16;

// Rough rows are padded to a multiple of this many numbers, two of which share a word.
constexpr int64_t kRoughPad = 32;

// Rows of factors that passes gather from, in single precision or rough: the other is null.
struct Gathered {
  const float* single;
  const uint32_t* rough;  // in pairs, as the kernels' `to_rough` writes them
  int64_t width;          // numbers per row, padded
};

// One row in the eigenbasis of G, where the shared part is diagonal:
//   ( diag(shared) + sum_j pairs_j y_j y_j' ) x = sum_j pairs_j y_j ,  y_j = fixed[columns_j].
struct RowSystem {
  Gathered fixed;
  const int32_t* columns;
  const float* pairs;
  int64_t count;
  const float* shared;  // padded with ones
};

constexpr int64_t kCgScratch = 5;

struct CgOptions {
  bool precondition;
  int max_iterations;
  float tolerance;
};

// An operand of a product: element (i, j) lies at data[i * row + j * column].
struct Strided {
  const float* data;
  int64_t row;
  int64_t column;
};

enum class Write { kSet, kAdd, kSubtract };

// Columns with their scores.
struct Hits {
  float* scores;
  int32_t* columns;
};

struct Kernels {
  const char* name;

  // x = A^-1 b by conjugate gradients from x. Scratch: kCgScratch * width. False: not positive
  // definite.
  bool (*solve_cg)(const RowSystem&, const CgOptions&, float* x, float* scratch);

  // out = A x - b, from rows in single precision
  void (*gradient)(const RowSystem&, const float* x, float* out);

  // x = A^-1 b by Cholesky, primal or dual by the shape, from rows in single precision. False: not
  // positive definite.
  bool (*solve_exact)(const RowSystem&, int64_t factors, float* x, float* scratch);
  // x := A^-1 x, the same for any right-hand side.
  bool (*solve_general)(const RowSystem&, int64_t factors, float* x, float* scratch);
  int64_t (*exact_scratch)(int64_t factors, int64_t longest_row);

  // sum += sum_j weight_j y_j
  void (*add_rows)(const float* fixed, int64_t width, const int32_t* columns, const float* weight,
                   int64_t count, float* sum);

  // scores_j = x.y_j
  void (*gather_scores)(const float* fixed, int64_t width, const int32_t* columns, int64_t count,
                        const float* x, float* scores);

  // sum_j weight_j (1 - x.y_j)^2; weight may be null for ones.
  float (*missed)(Gathered fixed, const int32_t* columns, const float* weight, int64_t count,
                  const float* x);

  // sum_i a_i b_i c_i over `width` floats.
  float (*dot3)(const float* a, const float* b, const float* c, int64_t width);

  // Packed right operands: all columns of diag(scale) B (depth x columns) in panels of `panel`
  // columns; scale may be null for ones.
  int64_t panel;
  int64_t (*packed_size)(int64_t depth, int64_t columns);
  void (*pack)(Strided b, int64_t depth, int64_t columns, const float* scale, int64_t first_panel,
               int64_t last_panel, float* out);

  // C (rows x [first, last)) := or += or -= A B, `first` a multiple of `panel`; C points at
  // column `first`. Each element is summed in the same order wherever it stands.
  void (*multiply)(Strided a, int64_t rows, int64_t depth, const float* packed, int64_t columns,
                   int64_t first, int64_t last, Write write, float* c, int64_t c_row,
                   float* scratch);
  int64_t multiply_scratch;

  // Lower triangle of C (rows x rows) := or += or -= A diag(scale) A'; scale may be null for ones.
  void (*gram)(Strided a, int64_t rows, int64_t depth, const float* scale, Write write, float* c,
               int64_t c_row, float* scratch);
  int64_t (*gram_scratch)(int64_t rows);

  // Rough rows of these, of which there are `count` numbers, a multiple of kRoughPad.
  void (*to_rough)(const float* from, int64_t count, uint32_t* to);

  // scores_r = rows_r . query for `count` rows of `width` floats each: those named by `columns`, or
  // the first ones where it is null. A row has the same score either way.
  void (*scores)(const float* rows, const int32_t* columns, int64_t count, const float* query,
                 int64_t width, float* scores);

  // The same for the first `count` rough rows of `width` numbers each, padded like the query.
  void (*rough_scores)(const uint32_t* rows, int64_t count, const float* query, int64_t width,
                       float* scores);

  // Writes a hit for every score above the threshold, in order, and returns their number; score i
  // is that of the column first + i.
  int64_t (*collect)(const float* scores, int64_t count, float threshold, int32_t first, Hits hits);

  // Raises the threshold, which all hits exceed, so that k or a few more of them still do, ties
  // aside, and keeps those, in order; returns their number. There are at least k hits.
  int64_t (*prune)(Hits hits, int64_t count, int64_t k, float* threshold);
};

}  // namespace safecf
