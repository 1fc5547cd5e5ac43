// Half-steps and losses: rows are taken in blocks, rotated into the eigenbasis of G, solved there
// one by one, and rotated back.
#include <algorithm>
#include <atomic>
#include <limits>

#include "blocks.hpp"
#include "packed.hpp"

namespace safecf {
namespace {

struct Scratch {
  Buffer inside;   // a block in the eigenbasis
  Buffer outside;  // the same block, rotated back
  Buffer product;  // for the matrix products
  Buffer pairs;
  Buffer shared;
  Buffer solver;
};

// Solves every row with solve(system, x, scratch) -> bool.
template <class Solve>
int64_t solve_rows(const Kernels& kernels, const Execution& execution, const Rows& rows,
                   const Fixed& fixed, bool warm, int64_t longest, int64_t solver_scratch,
                   Solution out, Solve solve) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  const int64_t d = fixed.factors, width = fixed.width;
  const Packed into(kernels, execution, {fixed.basis, d, 1}, d, d);
  const Packed back(kernels, execution, {fixed.basis, 1, d}, d, d);
  const std::vector<Block> blocks = row_blocks(rows.matrix);
  std::atomic<int64_t> failed{kNone};

  const auto make_scratch = [&] {
    return Scratch{Buffer(kBlockRows * width),
                   Buffer(kBlockRows * d),
                   Buffer(kernels.multiply_scratch),
                   Buffer(longest),
                   Buffer(width, 1.0f),
                   Buffer(solver_scratch)};
  };
  parallel_for(
      static_cast<int64_t>(blocks.size()), execution, make_scratch,
      [&](int64_t task, Scratch& scratch) {
        const Block block = blocks[task];
        float* const factors = out.factors + block.first * d;
        if (warm)
          into.multiply(kernels, {factors, d, 1}, block.rows(), 0, d, scratch.inside.data(), width,
                        scratch.product.data());
        for (int64_t row = block.first; row < block.last; ++row) {
          const int64_t begin = rows.matrix.begin(row), count = rows.matrix.length(row);
          const int32_t* const columns = rows.matrix.columns + begin;
          const float* const weights = rows.matrix.weights ? rows.matrix.weights + begin : nullptr;
          for (int64_t j = 0; j < count; ++j)
            scratch.pairs[j] =
                rows.row_weight[row] * rows.col_weight[columns[j]] * (weights ? weights[j] : 1.0f);
          for (int64_t i = 0; i < d; ++i)
            scratch.shared[i] = rows.gram_weight[row] * fixed.values[i] + rows.ridge[row];
          const RowSystem system{fixed.rotated,        width, columns,
                                 scratch.pairs.data(), count, scratch.shared.data()};
          float* const x = scratch.inside.data() + (row - block.first) * width;
          const bool empty = std::all_of(scratch.pairs.data(), scratch.pairs.data() + count,
                                         [](float p) { return p == 0.0f; });
          if (empty) {
            std::fill_n(x, width, 0.0f);
          } else if (!solve(system, x, scratch.solver.data())) {
            for (int64_t seen = failed; row < seen && !failed.compare_exchange_weak(seen, row);) {
            }
          }
        }
        back.multiply(kernels, {scratch.inside.data(), width, 1}, block.rows(), 0, d,
                      scratch.outside.data(), d, scratch.product.data());
        for (int64_t row = 0; row < block.rows(); ++row) {
          float* const old = factors + row * d;
          const float* const x = scratch.outside.data() + row * d;
          float change = 0.0f, norm = 0.0f;
          for (int64_t i = 0; i < d; ++i) {
            change += (x[i] - old[i]) * (x[i] - old[i]);
            norm += x[i] * x[i];
            old[i] = x[i];
          }
          out.change[block.first + row] = change;
          out.norm[block.first + row] = norm;
        }
      });
  return failed == kNone ? -1 : failed.load();
}

}  // namespace

int64_t solve_rows_cg(const Kernels& kernels, const Execution& execution, const Rows& rows,
                      const Fixed& fixed, const CgOptions& options, Solution out) {
  return solve_rows(kernels, execution, rows, fixed, true, longest_row(rows.matrix),
                    kCgScratch * fixed.width, out,
                    [&](const RowSystem& system, float* x, float* scratch) {
                      return kernels.solve_cg(system, options, x, scratch);
                    });
}

int64_t solve_rows_exact(const Kernels& kernels, const Execution& execution, const Rows& rows,
                         const Fixed& fixed, Solution out) {
  const int64_t longest = longest_row(rows.matrix);
  return solve_rows(kernels, execution, rows, fixed, false, longest,
                    kernels.exact_scratch(fixed.factors, longest), out,
                    [&](const RowSystem& system, float* x, float* scratch) {
                      return kernels.solve_exact(system, fixed.factors, x, scratch);
                    });
}

void losses(const Kernels& kernels, const Execution& execution, const Csr& matrix,
            const float* pair_weight, const Fixed& fixed, const float* factors, float* losses) {
  const int64_t d = fixed.factors, width = fixed.width;
  const Packed into(kernels, execution, {fixed.basis, d, 1}, d, d);
  const std::vector<Block> blocks = row_blocks(matrix);
  struct LossScratch {
    Buffer inside, product, values;
  };
  const auto make_scratch = [&] {
    Buffer values(width, 0.0f);
    std::copy_n(fixed.values, d, values.data());
    return LossScratch{Buffer(kBlockRows * width), Buffer(kernels.multiply_scratch), values};
  };
  parallel_for(static_cast<int64_t>(blocks.size()), execution, make_scratch,
               [&](int64_t task, LossScratch& scratch) {
                 const Block block = blocks[task];
                 into.multiply(kernels, {factors + block.first * d, d, 1}, block.rows(), 0, d,
                               scratch.inside.data(), width, scratch.product.data());
                 for (int64_t row = block.first; row < block.last; ++row) {
                   const int64_t begin = matrix.begin(row);
                   const float* const x = scratch.inside.data() + (row - block.first) * width;
                   const float* const weights = matrix.weights ? matrix.weights + begin : nullptr;
                   const float missed = kernels.missed(fixed.rotated, width, matrix.columns + begin,
                                                       weights, matrix.length(row), x);
                   const float unobserved = kernels.dot3(x, x, scratch.values.data(), width);
                   losses[row] = 0.5f * (pair_weight[row] * missed + unobserved);
                 }
               });
}

}  // namespace safecf
