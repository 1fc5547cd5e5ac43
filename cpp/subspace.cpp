// Block coordinate descent: a block of every row's coordinates is solved given the others, with
// the scores of the observed pairs kept up to date.
#include <algorithm>

#include "blocks.hpp"
#include "first_failure.hpp"
#include "packed.hpp"

namespace safecf {
namespace {

struct Scratch {
  Buffer shared_part;  // of a few rows: G x in the block's eigenbasis
  Buffer inside;       // their blocks there, and then the steps
  Buffer outside;      // the steps, rotated back
  Buffer product;      // for the matrix products
  Buffer pairs, missing, scores;
  Buffer shared;
  Buffer solver;
};

}  // namespace

int64_t update_block(const Kernels& kernels, const Execution& execution, const Rows& rows,
                     const FixedBlock& fixed, int64_t first, int64_t factors, Solution out,
                     float* scores, const uint32_t* positions) {
  const int64_t d = factors, size = fixed.side.factors, width = fixed.side.rotated.width;
  const Packed into(kernels, execution, {fixed.side.basis, size, 1}, size, size);
  const Packed back(kernels, execution, {fixed.side.basis, 1, size}, size, size);
  const Packed gram(kernels, execution, {fixed.gram, size, 1}, d, size);
  const std::vector<Block> blocks = row_blocks(rows.matrix);
  const int64_t longest = longest_row(rows.matrix);
  FirstFailure failure;

  const auto make_scratch = [&] {
    return Scratch{Buffer(kBlockRows * width),
                   Buffer(kBlockRows * width, 0.0f),
                   Buffer(kBlockRows * size),
                   Buffer(kernels.multiply_scratch),
                   Buffer(longest),
                   Buffer(longest),
                   Buffer(longest),
                   Buffer(width, 1.0f),
                   Buffer(kernels.exact_scratch(size, longest))};
  };
  parallel_for(static_cast<int64_t>(blocks.size()), execution, make_scratch,
               [&](int64_t task, Scratch& scratch) {
                 const Block block = blocks[task];
                 float* const x = out.factors + block.first * d + first;
                 gram.multiply(kernels, {x - first, d, 1}, block.rows(), 0, size,
                               scratch.shared_part.data(), width, scratch.product.data());
                 into.multiply(kernels, {x, d, 1}, block.rows(), 0, size, scratch.inside.data(),
                               width, scratch.product.data());
                 for (int64_t row = block.first; row < block.last; ++row) {
                   const int64_t begin = rows.matrix.begin(row), count = rows.matrix.length(row);
                   const int32_t* const columns = rows.matrix.columns + begin;
                   const auto score = [&](int64_t j) -> float& {
                     return scores[positions ? positions[begin + j] : begin + j];
                   };
                   bool empty = true;
                   for (int64_t j = 0; j < count; ++j) {
                     const float pair = rows.pair(row, begin + j);
                     scratch.pairs[j] = pair;
                     scratch.scores[j] = score(j);
                     scratch.missing[j] = pair * (1.0f - scratch.scores[j]);
                     empty = empty && pair == 0.0f;
                   }
                   float* const step = scratch.inside.data() + (row - block.first) * width;
                   const float* const pulled =
                       scratch.shared_part.data() + (row - block.first) * width;
                   const float gram_weight = rows.gram_weight[row], ridge = rows.ridge[row];
                   if (empty) {
                     for (int64_t i = 0; i < size; ++i) step[i] = -step[i];
                   } else {
                     for (int64_t i = 0; i < size; ++i) {
                       step[i] = -gram_weight * pulled[i] - ridge * step[i];
                       scratch.shared[i] = gram_weight * fixed.side.values[i] + ridge;
                     }
                     kernels.add_rows(fixed.side.rotated.single, width, columns,
                                      scratch.missing.data(), count, step);
                     const RowSystem system{fixed.side.rotated, columns, scratch.pairs.data(),
                                            count, scratch.shared.data()};
                     if (!kernels.solve_general(system, size, step, scratch.solver.data()))
                       failure.at(row);
                   }
                   kernels.gather_scores(fixed.side.rotated.single, width, columns, count, step,
                                         scratch.missing.data());
                   for (int64_t j = 0; j < count; ++j)
                     score(j) = scratch.scores[j] + scratch.missing[j];
                 }
                 back.multiply(kernels, {scratch.inside.data(), width, 1}, block.rows(), 0, size,
                               scratch.outside.data(), size, scratch.product.data());
                 for (int64_t row = 0; row < block.rows(); ++row) {
                   const float* const step = scratch.outside.data() + row * size;
                   float change = 0.0f, norm = 0.0f;
                   for (int64_t i = 0; i < size; ++i) {
                     float& value = x[row * d + i];
                     value += step[i];
                     change += step[i] * step[i];
                     norm += value * value;
                   }
                   out.change[block.first + row] = change;
                   out.norm[block.first + row] = norm;
                 }
               });
  return failure.row();
}

void scores(const Kernels& kernels, const Execution& execution, const Csr& matrix,
            const float* factors, const float* others, int64_t width, float* scores) {
  const std::vector<Block> blocks = row_blocks(matrix);
  parallel_for(
      static_cast<int64_t>(blocks.size()), execution, [] { return 0; },
      [&](int64_t task, int) {
        for (int64_t row = blocks[task].first; row < blocks[task].last; ++row)
          kernels.gather_scores(others, width, matrix.columns + matrix.begin(row),
                                matrix.length(row), factors + row * width,
                                scores + matrix.begin(row));
      });
}

void scored_losses(const Kernels& kernels, const Execution& execution, const Csr& matrix,
                   const float* pair_weight, const float* scores, const float* factors,
                   int64_t width, const float* gram, int64_t gram_size, float* losses) {
  const Packed packed(kernels, execution, {gram, gram_size, 1}, gram_size, gram_size);
  const std::vector<Block> blocks = row_blocks(matrix);
  struct LossScratch {
    Buffer pulled, product, ones;
  };
  const auto make_scratch = [&] {
    return LossScratch{Buffer(kBlockRows * width, 0.0f), Buffer(kernels.multiply_scratch),
                       Buffer(width, 1.0f)};
  };
  parallel_for(
      static_cast<int64_t>(blocks.size()), execution, make_scratch,
      [&](int64_t task, LossScratch& scratch) {
        const Block block = blocks[task];
        packed.multiply(kernels, {factors + block.first * width, width, 1}, block.rows(), 0,
                        gram_size, scratch.pulled.data(), width, scratch.product.data());
        for (int64_t row = block.first; row < block.last; ++row) {
          double missed = 0;
          for (int64_t e = matrix.begin(row); e < matrix.begin(row + 1); ++e) {
            const float gap = 1.0f - scores[e];
            missed += (matrix.weights ? matrix.weights[e] : 1.0f) * gap * gap;
          }
          const float unobserved = kernels.dot3(factors + row * width,
                                                scratch.pulled.data() + (row - block.first) * width,
                                                scratch.ones.data(), width);
          losses[row] = 0.5f * (pair_weight[row] * static_cast<float>(missed) + unobserved);
        }
      });
}

}  // namespace safecf
