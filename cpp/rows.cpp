// Half-steps, gradients and losses: rows are taken in blocks, brought into the eigenbasis of G,
// dealt with there one by one, and brought back.
#include <algorithm>
#include <optional>

#include "blocks.hpp"
#include "first_failure.hpp"
#include "packed.hpp"

namespace safecf {
namespace {

enum class Ways { kInto, kBack, kBoth };

// The way of rows into the eigenbasis of G and back: rotations, unless they are in it anyway.
class Eigenbasis {
 public:
  // Only `ways` are made ready.
  Eigenbasis(const Kernels& kernels, const Execution& execution, const Fixed& fixed, Ways ways)
      : d_(fixed.factors), width_(fixed.rotated.width) {
    if (!fixed.basis) return;
    if (ways != Ways::kBack) into_.emplace(kernels, execution, Strided{fixed.basis, d_, 1}, d_, d_);
    if (ways != Ways::kInto) back_.emplace(kernels, execution, Strided{fixed.basis, 1, d_}, d_, d_);
  }

  // The padding of `inside` stays as it is.
  void enter(const Kernels& kernels, const float* rows, int64_t count, float* inside,
             float* scratch) const {
    if (into_) {
      into_->multiply(kernels, {rows, d_, 1}, count, 0, d_, inside, width_, scratch);
    } else {
      for (int64_t row = 0; row < count; ++row)
        std::copy_n(rows + row * d_, d_, inside + row * width_);
    }
  }

  void leave(const Kernels& kernels, const float* inside, int64_t count, float* rows,
             float* scratch) const {
    if (back_) {
      back_->multiply(kernels, {inside, width_, 1}, count, 0, d_, rows, d_, scratch);
    } else {
      for (int64_t row = 0; row < count; ++row)
        std::copy_n(inside + row * width_, d_, rows + row * d_);
    }
  }

 private:
  int64_t d_, width_;
  std::optional<Packed> into_, back_;
};

struct Scratch {
  Buffer inside;   // a block in the eigenbasis
  Buffer outside;  // the same block, brought back
  Buffer product;  // for the matrix products
  std::vector<int32_t> columns;
  Buffer pairs;
  Buffer shared;
  Buffer solver;
};

// Takes the rows in blocks. each(row, system, x, scratch) sees a row in the eigenbasis, without its
// pairs of weight zero, where x is the row of `start`, if there is one, and replaces x; done(block,
// found) gets what it put there, brought back.
template <class Each, class Done>
void for_rows(const Kernels& kernels, const Execution& execution, const Rows& rows,
              const Fixed& fixed, const float* start, int64_t longest, int64_t solver_scratch,
              Each each, Done done) {
  const int64_t d = fixed.factors, width = fixed.rotated.width;
  const Eigenbasis eigenbasis(kernels, execution, fixed, start ? Ways::kBoth : Ways::kBack);
  const std::vector<Block> blocks = row_blocks(rows.matrix);
  const int64_t most = std::min(kBlockRows, rows.matrix.rows);

  const auto make_scratch = [&] {
    return Scratch{
        Buffer(most * width),          Buffer(most * d), Buffer(kernels.multiply_scratch),
        std::vector<int32_t>(longest), Buffer(longest),  Buffer(width, 1.0f),
        Buffer(solver_scratch)};
  };
  parallel_for(static_cast<int64_t>(blocks.size()), execution, make_scratch,
               [&](int64_t task, Scratch& scratch) {
                 const Block block = blocks[task];
                 if (start)
                   eigenbasis.enter(kernels, start + block.first * d, block.rows(),
                                    scratch.inside.data(), scratch.product.data());
                 for (int64_t row = block.first; row < block.last; ++row) {
                   const int64_t begin = rows.matrix.begin(row);
                   int64_t count = 0;
                   for (int64_t entry = begin; entry < begin + rows.matrix.length(row); ++entry) {
                     scratch.columns[count] = rows.matrix.columns[entry];
                     scratch.pairs[count] = rows.pair(row, entry);
                     count += scratch.pairs[count] != 0.0f;
                   }
                   for (int64_t i = 0; i < d; ++i)
                     scratch.shared[i] = rows.gram_weight[row] * fixed.values[i] + rows.ridge[row];
                   const RowSystem system{fixed.rotated, scratch.columns.data(),
                                          scratch.pairs.data(), count, scratch.shared.data()};
                   each(row, system, scratch.inside.data() + (row - block.first) * width,
                        scratch.solver.data());
                 }
                 eigenbasis.leave(kernels, scratch.inside.data(), block.rows(),
                                  scratch.outside.data(), scratch.product.data());
                 done(block, scratch.outside.data());
               });
}

// Solves every row with solve(system, x, scratch) -> bool.
template <class Solve>
int64_t solve_rows(const Kernels& kernels, const Execution& execution, const Rows& rows,
                   const Fixed& fixed, bool warm, int64_t longest, int64_t solver_scratch,
                   Solution out, Solve solve) {
  const int64_t d = fixed.factors;
  FirstFailure failure;
  const auto each = [&](int64_t row, const RowSystem& system, float* x, float* scratch) {
    if (system.count == 0) {
      std::fill_n(x, system.fixed.width, 0.0f);
    } else if (!solve(system, x, scratch)) {
      failure.at(row);
    }
  };
  const auto done = [&](const Block& block, const float* found) {
    for (int64_t row = block.first; row < block.last; ++row, found += d) {
      float* const old = out.factors + row * d;
      float change = 0.0f, norm = 0.0f;
      for (int64_t i = 0; i < d; ++i) {
        change += (found[i] - old[i]) * (found[i] - old[i]);
        norm += found[i] * found[i];
        old[i] = found[i];
      }
      out.change[row] = change;
      out.norm[row] = norm;
    }
  };
  for_rows(kernels, execution, rows, fixed, warm ? out.factors : nullptr, longest, solver_scratch,
           each, done);
  return failure.row();
}

}  // namespace

int64_t solve_rows_cg(const Kernels& kernels, const Execution& execution, const Rows& rows,
                      const Fixed& fixed, const CgOptions& options, Solution out) {
  return solve_rows(kernels, execution, rows, fixed, true, longest_row(rows.matrix),
                    kCgScratch * fixed.rotated.width, out,
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

void gradients(const Kernels& kernels, const Execution& execution, const Rows& rows,
               const Fixed& fixed, const float* factors, float* gradients) {
  const int64_t d = fixed.factors;
  for_rows(
      kernels, execution, rows, fixed, factors, longest_row(rows.matrix), fixed.rotated.width,
      [&](int64_t, const RowSystem& system, float* x, float* scratch) {
        kernels.gradient(system, x, scratch);
        std::copy_n(scratch, system.fixed.width, x);
      },
      [&](const Block& block, const float* found) {
        std::copy_n(found, block.rows() * d, gradients + block.first * d);
      });
}

void losses(const Kernels& kernels, const Execution& execution, const Csr& matrix,
            const float* pair_weight, const Fixed& fixed, const float* factors, float* losses) {
  const int64_t d = fixed.factors, width = fixed.rotated.width;
  const Eigenbasis eigenbasis(kernels, execution, fixed, Ways::kInto);
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
                 eigenbasis.enter(kernels, factors + block.first * d, block.rows(),
                                  scratch.inside.data(), scratch.product.data());
                 for (int64_t row = block.first; row < block.last; ++row) {
                   const int64_t begin = matrix.begin(row);
                   const float* const x = scratch.inside.data() + (row - block.first) * width;
                   const float* const weights = matrix.weights ? matrix.weights + begin : nullptr;
                   const float missed = kernels.missed(fixed.rotated, matrix.columns + begin,
                                                       weights, matrix.length(row), x);
                   const float unobserved = kernels.dot3(x, x, scratch.values.data(), width);
                   losses[row] = 0.5f * (pair_weight[row] * missed + unobserved);
                 }
               });
}

}  // namespace safecf
