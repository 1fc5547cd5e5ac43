// Half-steps, gradients and losses: blocks of rows are rotated into the eigenbasis of G, processed
// there row by row, and rotated back.
#include <algorithm>
#include <optional>

#include "blocks.hpp"
#include "checks.hpp"
#include "first_failure.hpp"
#include "packed.hpp"

namespace safecf {
namespace {

enum class Direction { kForward, kBack, kBoth };

// Rotations into the eigenbasis of G and back; copies where the rows are in it already.
class Eigenbasis {
 public:
  Eigenbasis(const Fixed& fixed, Direction direction, const Execution& execution) {
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
      rotation->multiply(from, to, arena);
    else
      copy(from, to);
  }

  std::optional<Packed> forward_, back_;
};

// A pass over the rows of a half-step.
struct Pass {
  const Rows& rows;
  const Fixed& fixed;
  MatrixView<const float> start;  // what each row starts from; may be missing
  const RowBlocks& blocks;
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
  const int64_t most = std::min(kBlockRows, rows.matrix.rows()), longest = pass.blocks.longest_row;
  const int64_t needed =
      scratch<float>(most * width) + scratch<float>(most * d) + scratch<int32_t>(longest) +
      scratch<float>(longest) + scratch<float>(width) +
      std::max(pass.solver_scratch, pass.execution.kernels->products.multiply_scratch);

  const auto solve_block = [&](int64_t task, Arena arena) {
    const Block block = pass.blocks[task];
    const auto rotated = arena.take<float>(most, width).rows_from(0, block.rows());
    const auto found = arena.take<float>(most, d).rows_from(0, block.rows());
    const auto columns = arena.take<int32_t>(longest);
    const auto pairs = arena.take<float>(longest);
    const auto shared = arena.take<float>(width);
    fill(shared.from(d), 1.0f);
    if (pass.start)
      eigenbasis.rotate(pass.start.rows_from(block.first, block.rows()), rotated, arena);
    for (int64_t row = block.first; row < block.last; ++row) {
      const Entries entries = rows.matrix.entries(row);
      rows.matrix.read_columns(entries, fixed.side(), columns, *pass.execution.kernels);
      int64_t count = 0;
      for (int64_t j = 0; j < entries.count; ++j) {
        columns[count] = columns[j];
        pairs[count] = rows.pair(row, columns[j], entries.begin + j);
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
  parallel_for(pass.blocks.size(), needed, pass.execution, solve_block);
}

}  // namespace

int64_t solve_rows(const Rows& rows, const Fixed& fixed, const RowSolver& solver,
                   const SolverOptions& options, MatrixView<float> factors, const Report& report,
                   const Execution& execution) {
  check(rows, fixed, factors);
  check(report, factors.rows);
  check_apart({factors, report}, {rows, fixed});
  require(solver.takes_bfloat16 || !fixed.rotated.bfloat16, "this solver needs rotated in float32");
  require(options.max_iterations >= 0 && options.tolerance >= 0.0f,
          "max_iterations or tolerance is negative");
  const RowBlocks blocks(rows.matrix);
  const MatrixView<const float> start = solver.warm ? factors : MatrixView<float>();
  const Pass pass{rows,
                  fixed,
                  start,
                  blocks,
                  solver.scratch(fixed.factors(), fixed.rotated.width(), blocks.longest_row),
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
  check(rows, fixed, factors);
  check(rows, fixed, gradients);
  check_apart({gradients}, {rows, fixed, factors});
  require(!fixed.rotated.bfloat16, "gradients need rotated in float32");
  const int64_t width = fixed.rotated.width();
  const RowBlocks blocks(rows.matrix);
  const Pass pass{rows, fixed, factors, blocks, scratch<float>(width), execution};
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
  check(matrix);
  check(fixed);
  check_losses(matrix.rows(), pair_weight, ridge, factors, losses);
  require(factors.columns == fixed.factors(), "factors differ from the fixed side's");
  check_apart({losses}, {matrix, pair_weight, ridge, fixed, factors});
  const Kernels& kernels = *execution.kernels;
  const int64_t width = fixed.rotated.width();
  const Eigenbasis eigenbasis(fixed, Direction::kForward, execution);
  const RowBlocks blocks(matrix);
  const int64_t needed = scratch<float>(kBlockRows * width) + 2 * scratch<float>(width) +
                         scratch<int32_t>(blocks.longest_row) + kernels.products.multiply_scratch;

  const auto block_losses = [&](int64_t task, Arena arena) {
    const Block block = blocks[task];
    const auto rotated = arena.take<float>(kBlockRows, width).rows_from(0, block.rows());
    const auto values = arena.take<float>(width), with_ridge = arena.take<float>(width);
    const auto room = arena.take<int32_t>(blocks.longest_row);
    copy_padded(fixed.values, values);
    eigenbasis.rotate(factors.rows_from(block.first, block.rows()), rotated, arena);
    for (int64_t row = block.first; row < block.last; ++row) {
      const View<const float> x = rotated.row(row - block.first);
      const Entries entries = matrix.entries(row);
      const auto columns = matrix.read_columns(entries, fixed.side(), room, kernels);
      const float error =
          kernels.squared_error(fixed.rotated, columns, matrix.weights_of(entries), x);
      if (ridge)
        for (int64_t c = 0; c < width; ++c) with_ridge[c] = values[c] + ridge[row];
      const float unobserved = kernels.dot3(x, x, ridge ? with_ridge : values);
      losses[row] = 0.5f * (pair_weight[row] * error + unobserved);
    }
  };
  parallel_for(blocks.size(), needed, execution, block_losses);
}

}  // namespace safecf
