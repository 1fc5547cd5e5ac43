// Half-steps, gradients and losses: blocks of rows are rotated into the eigenbasis of G, processed
// there row by row, and rotated back.
#include <algorithm>
#include <optional>
#include <vector>

#include "blocks.hpp"
#include "first_failure.hpp"
#include "packed.hpp"

namespace safecf {
namespace {

enum class Direction { kForward, kBack, kBoth };

// Rotations into the eigenbasis of G and back; copies where the rows are in it already.
class Eigenbasis {
 public:
  Eigenbasis(const Fixed& fixed, Direction direction, const Execution& execution)
      : kernels_(*execution.kernels) {
    if (!fixed.basis) return;
    const Operand basis(fixed.basis);
    if (direction != Direction::kBack) forward_.emplace(basis, execution);
    if (direction != Direction::kForward) back_.emplace(basis.transposed(), execution);
  }

  // Pads the rotated rows with zeros.
  void rotate(MatrixView<const float> rows, MatrixView<float> rotated, Arena arena) const {
    apply(forward_, rows, rotated.columns_from(0, rows.columns), arena);
    pad(rotated, rows.columns);
  }
  void rotate_back(MatrixView<const float> rotated, MatrixView<float> rows, Arena arena) const {
    apply(back_, rotated.columns_from(0, rows.columns), rows, arena);
  }

 private:
  void apply(const std::optional<Packed>& rotation, MatrixView<const float> from,
             MatrixView<float> to, Arena arena) const {
    if (rotation)
      rotation->multiply(from, to, kernels_, arena);
    else
      copy(from, to);
  }

  const Kernels& kernels_;
  std::optional<Packed> forward_, back_;
};

// A pass over the rows of a half-step.
struct Pass {
  const Rows& rows;
  const Fixed& fixed;
  MatrixView<const float> start;  // what each row starts from; may be missing
  int64_t longest_row;
  int64_t solver_scratch;
  const Execution& execution;
};

// Calls each(row, system, x, arena) for every row in the eigenbasis, pairs of weight zero left out,
// where x is the row of `start`, and is replaced. Then done(block, found) gets a block's x, rotated
// back.
template <class Each, class Done>
void for_rows(const Pass& pass, const Each& each, const Done& done) {
  const Rows& rows = pass.rows;
  const Fixed& fixed = pass.fixed;
  const int64_t d = fixed.factors(), width = fixed.rotated.width();
  const Eigenbasis eigenbasis(fixed, pass.start ? Direction::kBoth : Direction::kBack,
                              pass.execution);
  const std::vector<Block> blocks = row_blocks(rows.matrix);
  const int64_t most = std::min(kBlockRows, rows.matrix.rows());
  const int64_t needed = scratch<float>(most * width) + scratch<float>(most * d) +
                         scratch<int32_t>(pass.longest_row) + scratch<float>(pass.longest_row) +
                         scratch<float>(width) +
                         std::max(pass.solver_scratch, pass.execution.kernels->multiply_scratch);

  const auto solve_block = [&](int64_t task, Arena arena) {
    const Block block = blocks[task];
    const auto rotated = arena.take<float>(most, width).rows_from(0, block.rows());
    const auto found = arena.take<float>(most, d).rows_from(0, block.rows());
    const auto columns = arena.take<int32_t>(pass.longest_row);
    const auto pairs = arena.take<float>(pass.longest_row);
    const auto shared = arena.take<float>(width);
    fill(shared.from(d), 1.0f);
    if (pass.start)
      eigenbasis.rotate(pass.start.rows_from(block.first, block.rows()), rotated, arena);
    for (int64_t row = block.first; row < block.last; ++row) {
      const int64_t begin = rows.matrix.begin(row);
      int64_t count = 0;
      for (int64_t entry = begin; entry < begin + rows.matrix.length(row); ++entry) {
        columns[count] = rows.matrix.columns[entry];
        pairs[count] = rows.pair(row, entry);
        count += pairs[count] != 0.0f;
      }
      for (int64_t i = 0; i < d; ++i)
        shared[i] = rows.gram_weight[row] * fixed.values[i] + rows.ridge[row];
      const RowSystem system{fixed.rotated, columns.slice(0, count), pairs.slice(0, count), shared,
                             d};
      each(row, system, rotated.row(row - block.first), arena);
    }
    eigenbasis.rotate_back(rotated, found, arena);
    done(block, found);
  };
  parallel_for(static_cast<int64_t>(blocks.size()), needed, pass.execution, solve_block);
}

}  // namespace

int64_t solve_rows(const Rows& rows, const Fixed& fixed, const RowSolver& solver,
                   const SolverOptions& options, MatrixView<float> factors, const Report& report,
                   const Execution& execution) {
  const int64_t longest = rows.matrix.longest_row();
  const MatrixView<const float> start = solver.warm ? factors : MatrixView<float>();
  const Pass pass{rows,
                  fixed,
                  start,
                  longest,
                  solver.scratch(fixed.factors(), fixed.rotated.width(), longest),
                  execution};
  FirstFailure failure;
  const auto each = [&](int64_t row, const RowSystem& system, View<float> x, Arena arena) {
    if (system.columns.size == 0) {
      fill(x, 0.0f);
    } else if (!solver.solve(system, options, x, arena)) {
      failure.at(row);
    }
  };
  const auto done = [&](const Block& block, MatrixView<const float> found) {
    for (int64_t row = block.first; row < block.last; ++row) {
      const View<float> old = factors.row(row);
      const View<const float> x = found.row(row - block.first);
      float change = 0.0f, norm = 0.0f;
      for (int64_t i = 0; i < x.size; ++i) {
        change += (x[i] - old[i]) * (x[i] - old[i]);
        norm += x[i] * x[i];
        old[i] = x[i];
      }
      report.change[row] = change;
      report.norm[row] = norm;
    }
  };
  for_rows(pass, each, done);
  return failure.row();
}

void gradients(const Rows& rows, const Fixed& fixed, MatrixView<const float> factors,
               MatrixView<float> gradients, const Execution& execution) {
  const int64_t width = fixed.rotated.width();
  const Pass pass{rows,     fixed, factors, rows.matrix.longest_row(), scratch<float>(width),
                  execution};
  const auto each = [&](int64_t, const RowSystem& system, View<float> x, Arena arena) {
    const auto gradient = arena.take<float>(width);
    execution.kernels->gradient(system, x, gradient);
    copy_padded(gradient, x);
  };
  const auto done = [&](const Block& block, MatrixView<const float> found) {
    copy(found, gradients.rows_from(block.first, block.rows()));
  };
  for_rows(pass, each, done);
}

void losses(const Csr& matrix, View<const float> pair_weight, View<const float> ridge,
            const Fixed& fixed, MatrixView<const float> factors, View<float> losses,
            const Execution& execution) {
  const Kernels& kernels = *execution.kernels;
  const int64_t width = fixed.rotated.width();
  const Eigenbasis eigenbasis(fixed, Direction::kForward, execution);
  const std::vector<Block> blocks = row_blocks(matrix);
  const int64_t needed =
      scratch<float>(kBlockRows * width) + scratch<float>(2 * width) + kernels.multiply_scratch;

  const auto block_losses = [&](int64_t task, Arena arena) {
    const Block block = blocks[task];
    const auto rotated = arena.take<float>(kBlockRows, width).rows_from(0, block.rows());
    const auto values = arena.take<float>(width), with_ridge = arena.take<float>(width);
    copy_padded(fixed.values, values);
    eigenbasis.rotate(factors.rows_from(block.first, block.rows()), rotated, arena);
    for (int64_t row = block.first; row < block.last; ++row) {
      const View<const float> x = rotated.row(row - block.first);
      const float error =
          kernels.squared_error(fixed.rotated, matrix.row_columns(row), matrix.row_weights(row), x);
      if (ridge)
        for (int64_t c = 0; c < width; ++c) with_ridge[c] = values[c] + ridge[row];
      const float unobserved = kernels.dot3(x, x, ridge ? with_ridge : values);
      losses[row] = 0.5f * (pair_weight[row] * error + unobserved);
    }
  };
  parallel_for(static_cast<int64_t>(blocks.size()), needed, execution, block_losses);
}

}  // namespace safecf
