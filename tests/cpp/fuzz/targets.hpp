// The fuzz targets, one per native entry, and the half-step that many of them make.
#pragma once

#include "input.hpp"

namespace safecf::fuzz {

// Whether an output is to overlap an input.
inline bool overlap(Input& input) { return input.byte() == 255; }

// An optional array: there or not.
inline View<const float> maybe(Input& input, const std::vector<float>& values) {
  return input.byte() % 2 ? in(values) : View<const float>();
}

template <class T>
Dense<T> zeros(int64_t rows, int64_t columns) {
  return {rows, columns, std::vector<T>(static_cast<size_t>(rows * columns))};
}

// The fixed side of a half-step, in float32 or in bfloat16.
struct FixedSide {
  Dense<float> rotated, basis;
  Dense<uint32_t> words;
  std::vector<float> values;
  bool bfloat16, with_basis;

  FixedSide(Input& input, int64_t rows, int64_t d, bool allow_words)
      : rotated(input.dense(rows, padded_width(d))), basis(input.dense(d, d)), words{} {
    values = input.numbers(d);
    bfloat16 = allow_words && input.byte() % 2;
    with_basis = input.byte() % 4 != 0;
    if (!bfloat16) return;
    words = zeros<uint32_t>(rotated.rows, input.about(bfloat16_width(d) / 2));
    for (uint32_t& word : words.values) word = input.index<uint32_t>(1 << 30) * 65537u;
  }
  Fixed fixed() const {
    Fixed found;
    found.values = in(values);
    if (with_basis) found.basis = basis.in();
    if (bfloat16)
      found.rotated.bfloat16 = words.in();
    else
      found.rotated.float32 = rotated.in();
    return found;
  }
};

// A half-step: systems, fixed side and factors.
struct HalfStep {
  int64_t rows, others, d, width;  // `width` of the factors, of which d are solved for
  Sparse matrix;
  std::vector<float> row_weight, col_weight, gram_weight, ridge, change, norm;
  FixedSide side;
  Dense<float> factors;

  explicit HalfStep(Input& input, bool allow_words = true, bool block = false)
      : rows(input.size(6)),
        others(input.size(24)),
        d(input.width(40)),
        width(d + (block ? input.size(5) : 0)),
        matrix(input.sparse(rows, others)),
        row_weight(input.numbers(rows)),
        col_weight(input.numbers(others)),
        gram_weight(input.numbers(rows)),
        ridge(input.numbers(rows)),
        change(input.numbers(rows)),
        norm(change.size() == static_cast<size_t>(rows) ? input.numbers(rows) : change),
        side(input, others, d, allow_words),
        factors(input.dense(rows, width)) {}

  Rows systems() const {
    return {matrix.csr(), in(row_weight), in(col_weight), in(gram_weight), in(ridge)};
  }
  Report report() { return {out(change), out(norm)}; }
};

using Target = void(Input& input, const Execution& run);

Target solve_rows, gradients, losses, update_block, scores, scored_losses, gram, rotate, eigen,
    to_bfloat16, transpose, positions, search, ranks, quantile;

constexpr Target* kTargets[] = {solve_rows,    gradients, losses, update_block, scores,
                                scored_losses, gram,      rotate, eigen,        to_bfloat16,
                                transpose,     positions, search, ranks,        quantile};

}  // namespace safecf::fuzz
