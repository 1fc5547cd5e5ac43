// Block coordinate descent: a block of every row's coordinates is solved given the others, with
// the scores of the observed pairs kept up to date.
#include <algorithm>
#include <string>

#include "blocks.hpp"
#include "checks.hpp"
#include "first_failure.hpp"
#include "packed.hpp"

namespace safecf {
namespace {

// The scratch memory of one row's update.
struct RowScratch {
  View<int32_t> columns;
  View<uint32_t> positions;
  View<float> pairs, residuals, scores, shared;

  RowScratch(Arena& arena, int64_t longest, int64_t width)
      : columns(arena.take<int32_t>(longest)),
        positions(arena.take<uint32_t>(longest)),
        pairs(arena.take<float>(longest)),
        residuals(arena.take<float>(longest)),
        scores(arena.take<float>(longest)),
        shared(arena.take<float>(width)) {}
  static int64_t bytes(int64_t longest, int64_t width) {
    return 5 * scratch<float>(longest) + scratch<float>(width);
  }
};

// What the steps of all rows share.
struct BlockStep {
  const Rows& rows;
  const Fixed& side;
  const Scores& scores;
  const Kernels& kernels;

  // Replaces x, a row's block in the eigenbasis, by the step from it, given G x there; updates the
  // row's scores. False: not positive definite.
  bool apply(int64_t row, View<float> x, View<const float> gram_x, const RowScratch& room,
             Arena arena) const {
    const Entries entries = rows.matrix.entries(row);
    const int64_t count = entries.count;
    const auto columns = rows.matrix.read_columns(entries, side.side(), room.columns, kernels);
    const auto positions = scores.read_positions(entries, room.positions, kernels);
    const auto score = [&](int64_t j) -> float& {
      return scores.values[positions ? positions[j] : entries.begin + j];
    };
    const auto pairs = room.pairs.slice(0, count), residuals = room.residuals.slice(0, count);
    bool empty = true, solved = true;
    for (int64_t j = 0; j < count; ++j) {
      const float pair = rows.pair(row, columns[j], entries.begin + j);
      pairs[j] = pair;
      room.scores[j] = score(j);
      residuals[j] = pair * (1.0f - room.scores[j]);
      empty = empty && pair == 0.0f;
    }
    const float gram_weight = rows.gram_weight[row], ridge = rows.ridge[row];
    if (empty) {
      for (int64_t i = 0; i < side.factors(); ++i) x[i] = -x[i];
    } else {
      for (int64_t i = 0; i < side.factors(); ++i) {
        x[i] = -gram_weight * gram_x[i] - ridge * x[i];
        room.shared[i] = gram_weight * side.values[i] + ridge;
      }
      kernels.add_rows(side.rotated.float32, columns, residuals, x);
      solved = kernels.solve_general({side.rotated, columns, pairs, room.shared, side.factors()}, x,
                                     arena);
    }
    const auto changes = residuals;  // of the scores; the residuals are used up
    kernels.gather_scores(side.rotated.float32, columns, x, changes);
    for (int64_t j = 0; j < count; ++j) score(j) = room.scores[j] + changes[j];
    return solved;
  }
};

}  // namespace

View<const uint32_t> Scores::read_positions(const Entries& entries, View<uint32_t> room,
                                            const Kernels& kernels) const {
  if (!positions) return {};
  const auto found = room.slice(0, entries.count);
  const auto limit = static_cast<uint32_t>(std::min<int64_t>(values.size, UINT32_MAX));
  if (!kernels.read_indices(positions.slice(entries.begin, entries.count), limit, found))
    damaged("a position is not among the " + std::to_string(values.size) + " scores");
  return found;
}

int64_t update_block(const Rows& rows, const FixedBlock& fixed, MatrixView<float> factors,
                     const Report& report, const Scores& scores, const Execution& execution) {
  const int64_t size = fixed.side.factors(), entries = rows.matrix.columns.size;
  check_block(fixed.first, size, factors.columns);
  check(rows, fixed.side, factors.columns_from(fixed.first, size));
  check(report, factors.rows);
  require(!fixed.side.rotated.bfloat16, "the subspace solver needs rotated in float32");
  require(static_cast<bool>(fixed.side.basis), "the subspace solver needs a basis");
  require(fixed.gram.rows == factors.columns && fixed.gram.columns == size,
          "gram is not factors x block");
  require(scores.values.size == entries && (!scores.positions || scores.positions.size == entries),
          "one score and one position per entry are needed");
  check_apart({factors, report, scores.values}, {rows, fixed.side, fixed.gram, scores.positions});
  const Kernels& kernels = *execution.kernels;
  const int64_t width = fixed.side.rotated.width();
  const Packed forward(fixed.side.basis, execution), gram(fixed.gram, execution);
  const Packed back(Operand(fixed.side.basis).transposed(), execution);
  const RowBlocks blocks(rows.matrix);
  const int64_t longest = blocks.longest_row;
  const int64_t needed =
      2 * scratch<float>(kBlockRows * width) + scratch<float>(kBlockRows * size) +
      RowScratch::bytes(longest, width) +
      std::max(kernels.products.multiply_scratch, kernels.exact_scratch(size, longest));
  const BlockStep step{rows, fixed.side, scores, kernels};
  FirstFailure failure;

  const auto update_rows = [&](int64_t task, Arena arena) {
    const Block block = blocks[task];
    const auto whole = factors.rows_from(block.first, block.rows());
    const auto x = whole.columns_from(fixed.first, size);
    const auto gram_x = arena.take<float>(kBlockRows, width).rows_from(0, block.rows());
    const auto rotated = arena.take<float>(kBlockRows, width).rows_from(0, block.rows());
    const auto steps = arena.take<float>(kBlockRows, size).rows_from(0, block.rows());
    const RowScratch room(arena, longest, width);
    fill(room.shared.from(size), 1.0f);
    gram.multiply(whole, gram_x.columns_from(0, size), arena);
    forward.multiply(x, rotated.columns_from(0, size), arena);
    pad(rotated, size);
    for (int64_t row = 0; row < block.rows(); ++row)
      if (!step.apply(block.first + row, rotated.row(row), gram_x.row(row), room, arena))
        failure.at(block.first + row);
    back.multiply(rotated.columns_from(0, size), steps, arena);
    for (int64_t row = 0; row < block.rows(); ++row) {
      float change = 0.0f, norm = 0.0f;
      for (int64_t i = 0; i < size; ++i) {
        float& value = x(row, i);
        value += steps(row, i);
        change += steps(row, i) * steps(row, i);
        norm += value * value;
      }
      report.change[block.first + row] = change;
      report.norm[block.first + row] = norm;
    }
  };
  parallel_for(blocks.size(), needed, execution, update_rows);
  return failure.row();
}

void scores(const Csr& matrix, MatrixView<const float> factors, MatrixView<const float> others,
            View<float> scores, const Execution& execution) {
  check(matrix);
  check_factors(factors.columns);
  require(factors.rows == matrix.rows() && scores.size == matrix.columns.size,
          "one row of factors per row and one score per entry of the matrix are needed");
  require(others.columns == factors.columns && factors.columns == padded_width(factors.columns),
          "rows are not padded");
  check_apart({scores}, {matrix, factors, others});
  const RowBlocks blocks(matrix);
  const Side side{"the other side", others.rows};
  const auto block_scores = [&](int64_t task, Arena arena) {
    const auto room = arena.take<int32_t>(blocks.longest_row);
    for (int64_t row = blocks[task].first; row < blocks[task].last; ++row) {
      const Entries entries = matrix.entries(row);
      const auto columns = matrix.read_columns(entries, side, room, *execution.kernels);
      execution.kernels->gather_scores(others, columns, factors.row(row),
                                       scores.slice(entries.begin, entries.count));
    }
  };
  parallel_for(blocks.size(), scratch<int32_t>(blocks.longest_row), execution, block_scores);
}

void scored_losses(const Csr& matrix, View<const float> pair_weight, View<const float> ridge,
                   View<const float> scores, MatrixView<const float> factors,
                   MatrixView<const float> gram, View<float> losses, const Execution& execution) {
  check(matrix);
  check_losses(matrix.rows(), pair_weight, ridge, factors, losses);
  check_factors(gram.rows);
  require(scores.size == matrix.columns.size, "one score per entry of the matrix is needed");
  require(gram.columns == gram.rows && factors.columns == padded_width(gram.rows),
          "rows are not padded");
  check_apart({losses}, {matrix, pair_weight, ridge, scores, factors, gram});
  const Kernels& kernels = *execution.kernels;
  const int64_t d = gram.rows, width = factors.columns;
  const Packed packed(gram, execution);
  const RowBlocks blocks(matrix);
  const int64_t needed = scratch<float>(kBlockRows * width) + scratch<float>(width) +
                         kernels.products.multiply_scratch;

  const auto block_losses = [&](int64_t task, Arena arena) {
    const Block block = blocks[task];
    const auto gram_x = arena.take<float>(kBlockRows, width).rows_from(0, block.rows());
    const auto ones = arena.take<float>(width);
    fill(ones, 1.0f);
    const auto x = factors.rows_from(block.first, block.rows());
    packed.multiply(x.columns_from(0, d), gram_x.columns_from(0, d), arena);
    pad(gram_x, d);
    for (int64_t row = block.first; row < block.last; ++row) {
      const Entries entries = matrix.entries(row);
      double error = 0;
      for (int64_t e = entries.begin; e < entries.begin + entries.count; ++e) {
        const float gap = 1.0f - scores[e];
        error += matrix.weight(e) * gap * gap;
      }
      const View<const float> own = factors.row(row);
      float unobserved = kernels.dot3(own, gram_x.row(row - block.first), ones);
      if (ridge) unobserved += ridge[row] * kernels.dot3(own, own, ones);
      losses[row] = 0.5f * (pair_weight[row] * static_cast<float>(error) + unobserved);
    }
  };
  parallel_for(blocks.size(), needed, execution, block_losses);
}

}  // namespace safecf
