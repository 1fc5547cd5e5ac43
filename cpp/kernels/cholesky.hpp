// Blocked Cholesky factorisation and the exact solution of one row.
#pragma once

#include "gather.hpp"
#include "gemm.hpp"

namespace {

using safecf::Arena;
using safecf::scratch;

constexpr int64_t kBlock = 32;

// U = L' of a block of at most kBlock x kBlock, filled up with the identity. Left of the diagonal
// it is undefined.
inline bool factor_block(MatrixView<const float> a, MatrixView<float> upper) {
  const int64_t size = a.rows;
  for (int64_t j = size; j < kBlock; ++j)
    for (int64_t i = j; i < kBlock; ++i) upper(j, i) = i == j ? 1.0f : 0.0f;
  for (int64_t j = 0; j < size; ++j) {
    for (int64_t i = j; i < size; ++i) upper(j, i) = a(i, j);
    for (int64_t i = size; i < kBlock; ++i) upper(j, i) = 0.0f;
  }
  for (int64_t j = 0; j < size; ++j) {
    const View<float> row = upper.row(j);
    if (!(row[j] > 0.0f)) return false;
    const float scale = 1.0f / __builtin_sqrtf(row[j]);
    for (int64_t i = j / kLanes * kLanes; i < kBlock; i += kLanes)
      store(row, i, scale * load(row, i));
    for (int64_t i = j + 1; i < size; ++i) {
      const View<float> to = upper.row(i);
      for (int64_t k = i / kLanes * kLanes; k < kBlock; k += kLanes)
        store(to, k, load(to, k) - row[i] * load(row, k));
    }
  }
  return true;
}

// L^-1
inline void invert_block(MatrixView<const float> upper, MatrixView<float> inverse) {
  for (int64_t i = 0; i < kBlock; ++i) {
    const View<float> row = inverse.row(i);
    for (int64_t j = 0; j < kBlock; ++j) row[j] = i == j ? 1.0f : 0.0f;
    for (int64_t t = 0; t < i; ++t)
      for (int64_t j = 0; j < kBlock; j += kLanes)
        store(row, j, load(row, j) - upper(t, i) * load(inverse.row(t), j));
    const float scale = 1.0f / upper(i, i);
    for (int64_t j = 0; j < kBlock; ++j) row[j] *= scale;
  }
}

inline int64_t cholesky_scratch(int64_t size) {
  return 2 * scratch<float>(kBlock * kBlock) + scratch<float>(packed_size(kBlock, kBlock)) +
         scratch<float>(size * kBlock) + gram_scratch(size);
}

// A = L L' in place, in the lower triangle. False: not positive definite.
inline bool cholesky(MatrixView<float> a, Arena arena) {
  const int64_t size = a.rows;
  const auto upper = arena.take<float>(kBlock, kBlock), inverse = arena.take<float>(kBlock, kBlock);
  const auto packed = arena.take<float>(packed_size(kBlock, kBlock));
  const auto solved = arena.take<float>(size, kBlock);
  for (int64_t k = 0; k < size; k += kBlock) {
    const int64_t width = min_of(kBlock, size - k), left = size - k - width;
    const auto corner = a.rows_from(k, width).columns_from(k, width);
    if (!factor_block(corner, upper)) return false;
    for (int64_t i = 0; i < width; ++i)
      for (int64_t j = 0; j <= i; ++j) corner(i, j) = upper(j, i);
    if (left == 0) break;
    // L21 = A21 L11^-T, then A22 -= L21 L21'
    invert_block(upper, inverse);
    const auto below = a.rows_from(k + width, left).columns_from(k, width);
    const auto rest = a.rows_from(k + width, left).columns_from(k + width, left);
    const auto l21 = solved.rows_from(0, left);
    pack(Operand(inverse).transposed(), {}, 0, (kBlock + kColumns - 1) / kColumns, packed);
    multiply(below, {packed.data, kBlock, kBlock}, 0, Write::kSet, l21, arena);
    for (int64_t i = 0; i < left; ++i)
      for (int64_t j = 0; j < width; ++j) below(i, j) = l21(i, j);
    gram(l21, {}, Write::kSubtract, rest, arena);
  }
  return true;
}

// x := L^-T L^-1 x
inline void substitute(MatrixView<const float> lower, View<float> x) {
  for (int64_t i = 0; i < x.size; ++i)
    x[i] = (x[i] - dot(lower.row(i).slice(0, i), x.slice(0, i))) / lower(i, i);
  for (int64_t i = x.size - 1; i >= 0; --i) {
    x[i] /= lower(i, i);
    axpy(-x[i], lower.row(i).slice(0, i), x.slice(0, i));
  }
}

inline int64_t exact_scratch(int64_t factors, int64_t longest_row) {
  const int64_t width = round_up(factors, safecf::kPad), size = min_of(factors, longest_row);
  const int64_t gathered = longest_row < factors ? longest_row : max_of(kDepth, factors);
  return scratch<float>(width) + scratch<float>(size) + scratch<float>(gathered) +
         scratch<float>(gathered * width) + scratch<float>(size * round_up(size, safecf::kPad)) +
         cholesky_scratch(size);
}

// rows_j = sqrt(p_j) y_j D^-1/2 of the pairs from `first` on, and root_j = sqrt(p_j)
inline void gather_scaled(const safecf::RowSystem& a, int64_t first, View<const float> scale,
                          MatrixView<float> rows, View<float> root) {
  const MatrixView<const float> fixed = a.fixed.float32;
  const auto row_of = [&](int64_t t) SAFECF_ALWAYS {
    return fixed.row(a.columns[min_of(t, a.columns.size - 1)]);
  };
  for (int64_t j = 0; j < rows.rows; ++j) {
    const View<const float> from = row_of(first + j), next = row_of(first + j + kPrefetchRows);
    const View<float> to = rows.row(j);
    root[j] = __builtin_sqrtf(a.pairs[first + j]);
    for (int64_t i = 0; i < to.size; i += kLanes) {
      __builtin_prefetch(next.data + i);
      store(to, i, root[j] * load(from, i) * load(scale, i));
    }
  }
}

constexpr int64_t kFewRows = 48;  // for which packing them takes longer than their products

// Lower triangle of C = A A', the rows of A padded with zeros.
inline void gram_of_few(MatrixView<const float> a, MatrixView<float> c) {
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j <= i; j += kGroup) {
      Group<float> group;
      float found[kGroup];
      SAFECF_UNROLL
      for (int g = 0; g < kGroup; ++g) group.rows[g] = a.row(min_of(j + g, i)).data;
      group_scores(group, group, a.row(i), found);
      for (int64_t g = 0; g < min_of(kGroup, i + 1 - j); ++g) c(i, j + g) = found[g];
    }
}

// One row's matrix in the scaled form I + B'B (primal) or I + BB' (dual), B = P^1/2 Y D^-1/2,
// and its Cholesky factor. The dual is used where it is smaller: count < factors.
struct Factorised {
  bool dual;
  View<float> scale;        // D^-1/2
  View<float> right;        // room for a right-hand side
  View<float> root;         // P^1/2, of a chunk when primal
  MatrixView<float> rows;   // B, of a chunk when primal
  MatrixView<float> lower;  // the factor
};

// Calls visit(chunk) for chunks of that many rows of B in `rows` and of P^1/2 in `root`; when dual,
// there is one chunk. False: not positive definite.
template <class Visit>
inline bool factorise(const safecf::RowSystem& a, Arena arena, Factorised& f, Visit visit) {
  const int64_t factors = a.factors, width = a.shared.size, count = a.columns.size;
  f.dual = count < factors;
  const int64_t size = f.dual ? count : factors, stride = round_up(size, safecf::kPad);
  const int64_t gathered = f.dual ? count : kDepth;
  f.scale = arena.take<float>(width);
  f.right = arena.take<float>(size);
  f.root = arena.take<float>(gathered);
  f.rows = arena.take<float>(gathered, width);
  f.lower = arena.take<float>(size, stride).columns_from(0, size);

  int not_positive = 0;
  for (int64_t i = 0; i < factors; ++i) {
    not_positive += !(a.shared[i] > 0.0f);
    f.scale[i] = 1.0f / __builtin_sqrtf(a.shared[i]);
  }
  if (not_positive) return false;
  fill(f.scale.from(factors), 0.0f);

  if (f.dual) {
    gather_scaled(a, 0, f.scale, f.rows, f.root);
    if (size <= kFewRows)
      gram_of_few(f.rows, f.lower);
    else
      gram(f.rows.columns_from(0, factors), {}, Write::kSet, f.lower, arena);
    visit(count);
  } else {
    for (int64_t j = 0; j < count; j += kDepth) {
      const auto rows = f.rows.rows_from(0, min_of(kDepth, count - j));
      gather_scaled(a, j, f.scale, rows, f.root);
      gram(Operand(rows.columns_from(0, factors)).transposed(), {},
           j == 0 ? Write::kSet : Write::kAdd, f.lower, arena);
      visit(rows.rows);
    }
  }
  for (int64_t i = 0; i < size; ++i) f.lower(i, i) += 1.0f;
  return cholesky(f.lower, arena);
}

// x := D^-1/2 x; false: not finite
inline bool unscale(const Factorised& f, View<float> x) {
  for (int64_t i = 0; i < x.size; i += kLanes) store(x, i, load(x, i) * load(f.scale, i));
  return is_finite(dot(x, x));
}

// The right-hand side Y'p:  x = D^-1/2 (I + B'B)^-1 B' P^1/2 1   primal,
//                           x = D^-1/2 B' (I + BB')^-1 P^1/2 1   dual.
inline bool exact(const safecf::RowSystem& a, const safecf::SolverOptions&, View<float> x,
                  Arena arena) {
  fill(x, 0.0f);
  if (a.columns.size == 0) return true;
  Factorised f;
  const bool positive = factorise(a, arena, f, [&](int64_t chunk) {
    if (!f.dual)
      for (int64_t t = 0; t < chunk; ++t) axpy(f.root[t], f.rows.row(t), x);
  });
  if (!positive) return false;
  if (f.dual) {
    for (int64_t j = 0; j < f.right.size; ++j) f.right[j] = f.root[j];
    substitute(f.lower, f.right);
    for (int64_t j = 0; j < f.right.size; ++j) axpy(f.right[j], f.rows.row(j), x);
  } else {
    substitute(f.lower, x.slice(0, a.factors));
  }
  return unscale(f, x);
}

// x := A^-1 x, any right-hand side:  D^-1/2 (I + B'B)^-1 t ,  t = D^-1/2 x   primal,
//                                    D^-1/2 (t - B' (I + BB')^-1 B t)        dual.
inline bool solve_general(const safecf::RowSystem& a, View<float> x, Arena arena) {
  Factorised f;
  if (!factorise(a, arena, f, [](int64_t) {})) return false;
  for (int64_t i = 0; i < x.size; i += kLanes) store(x, i, load(x, i) * load(f.scale, i));
  if (f.dual) {
    for (int64_t j = 0; j < f.right.size; ++j) f.right[j] = dot(f.rows.row(j), x);
    substitute(f.lower, f.right);
    for (int64_t j = 0; j < f.right.size; ++j) axpy(-f.right[j], f.rows.row(j), x);
  } else {
    substitute(f.lower, x.slice(0, a.factors));
  }
  return unscale(f, x);
}

}  // namespace
