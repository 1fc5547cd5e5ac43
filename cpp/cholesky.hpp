// Blocked Cholesky factorisation and the exact solution of one row.
#pragma once

#include "gather.hpp"
#include "gemm.hpp"

namespace {

constexpr int64_t kBlock = 32;

// U = L' of the leading size x size block of `a`, by rows of kBlock floats, filled up with those of
// the identity. What stands left of the diagonal means nothing.
inline bool factor_block(const float* a, int64_t a_row, int64_t size, float* upper) {
  for (int64_t j = size; j < kBlock; ++j)
    for (int64_t i = j; i < kBlock; ++i) upper[j * kBlock + i] = i == j ? 1.0f : 0.0f;
  for (int64_t j = 0; j < size; ++j) {
    for (int64_t i = j; i < size; ++i) upper[j * kBlock + i] = a[i * a_row + j];
    for (int64_t i = size; i < kBlock; ++i) upper[j * kBlock + i] = 0.0f;
  }
  for (int64_t j = 0; j < size; ++j) {
    float* const row = upper + j * kBlock;
    if (!(row[j] > 0.0f)) return false;
    const float scale = 1.0f / __builtin_sqrtf(row[j]);
    for (int64_t i = j / kLanes * kLanes; i < kBlock; i += kLanes)
      store(row + i, scale * load(row + i));
    for (int64_t i = j + 1; i < size; ++i)
      for (int64_t k = i / kLanes * kLanes; k < kBlock; k += kLanes) {
        float* const to = upper + i * kBlock + k;
        store(to, load(to) - row[i] * load(row + k));
      }
  }
  return true;
}

// L^-1, by rows of kBlock floats.
inline void invert_block(const float* upper, float* inverse) {
  for (int64_t i = 0; i < kBlock; ++i) {
    float* const row = inverse + i * kBlock;
    for (int64_t j = 0; j < kBlock; ++j) row[j] = i == j ? 1.0f : 0.0f;
    for (int64_t t = 0; t < i; ++t) axpy(-upper[t * kBlock + i], inverse + t * kBlock, row, kBlock);
    const float scale = 1.0f / upper[i * kBlock + i];
    for (int64_t j = 0; j < kBlock; ++j) row[j] *= scale;
  }
}

inline int64_t cholesky_scratch(int64_t size) {
  return 2 * kBlock * kBlock + packed_size(kBlock, kBlock) + size * kBlock + gram_scratch(size);
}

// A = L L' in place, lower triangle by rows. False: not positive definite.
inline bool cholesky(float* a, int64_t size, int64_t a_row, float* scratch) {
  float* const upper = scratch;
  float* const inverse = upper + kBlock * kBlock;
  float* const packed = inverse + kBlock * kBlock;
  float* const below = packed + packed_size(kBlock, kBlock);
  float* const rest = below + size * kBlock;
  for (int64_t k = 0; k < size; k += kBlock) {
    const int64_t width = min_of(kBlock, size - k), left = size - k - width;
    float* const corner = a + k * a_row + k;
    if (!factor_block(corner, a_row, width, upper)) return false;
    for (int64_t i = 0; i < width; ++i)
      for (int64_t j = 0; j <= i; ++j) corner[i * a_row + j] = upper[j * kBlock + i];
    if (left == 0) break;
    // L21 = A21 L11^-T, then A22 -= L21 L21'
    invert_block(upper, inverse);
    float* const panel = corner + width * a_row;
    pack({inverse, 1, kBlock}, kBlock, kBlock, nullptr, 0, (kBlock + kColumns - 1) / kColumns,
         packed);
    multiply({panel, a_row, 1}, left, kBlock, packed, kBlock, 0, kBlock, Write::kSet, below, kBlock,
             rest);
    for (int64_t i = 0; i < left; ++i)
      for (int64_t j = 0; j < width; ++j) panel[i * a_row + j] = below[i * kBlock + j];
    gram({below, kBlock, 1}, left, kBlock, nullptr, Write::kSubtract, panel + width, a_row, rest);
  }
  return true;
}

// x := L^-T L^-1 x
inline void substitute(const float* lower, int64_t size, int64_t row, float* x) {
  for (int64_t i = 0; i < size; ++i)
    x[i] = (x[i] - dot(lower + i * row, x, i)) / lower[i * row + i];
  for (int64_t i = size - 1; i >= 0; --i) {
    x[i] /= lower[i * row + i];
    axpy(-x[i], lower + i * row, x, i);
  }
}

inline int64_t exact_scratch(int64_t factors, int64_t longest_row) {
  const int64_t width = round_up(factors, safecf::kPad), size = min_of(factors, longest_row);
  const int64_t gathered = longest_row < factors ? longest_row : max_of(kDepth, factors);
  return width * (2 + gathered) + round_up(gathered, safecf::kPad) +
         size * round_up(size, safecf::kPad) + cholesky_scratch(size);
}

// out_j = sqrt(p_j) y_j D^-1/2 for `count` rows, and root_j = sqrt(p_j)
inline void gather_scaled(const safecf::RowSystem& a, int64_t first, int64_t count,
                          const float* scale, float* out, float* root) {
  for (int64_t j = 0; j < count; ++j) {
    const auto row_of = [&](int64_t t) {
      return a.fixed.single + a.columns[min_of(t, a.count - 1)] * a.fixed.width;
    };
    const float* const row = row_of(first + j);
    const float* const next = row_of(first + j + kAhead);
    root[j] = __builtin_sqrtf(a.pairs[first + j]);
    for (int64_t i = 0; i < a.fixed.width; i += kLanes) {
      __builtin_prefetch(next + i);
      store(out + j * a.fixed.width + i, root[j] * load(row + i) * load(scale + i));
    }
  }
}

constexpr int64_t kFewRows = 48;  // for which packing them takes longer than their products

// Lower triangle of C (count x count) = A A', by rows of `width` floats, padded with zeros.
inline void gram_of_few(const float* rows, int64_t width, int64_t count, float* c, int64_t c_row) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j <= i; j += kGroup) {
      Group<float> group;
      float found[kGroup];
      SAFECF_UNROLL
      for (int g = 0; g < kGroup; ++g) group.rows[g] = rows + min_of(j + g, i) * width;
      scores_of(group, group, rows + i * width, width, found);
      for (int64_t g = 0; g < min_of(kGroup, i + 1 - j); ++g) c[i * c_row + j + g] = found[g];
    }
}

// One row's matrix in the scaled form I + B'B (primal) or I + BB' (dual), B = P^1/2 Y D^-1/2,
// and its Cholesky factor. The dual is taken where it is smaller: count < factors.
struct Factorised {
  bool dual;
  int64_t size, row;  // of the matrix, and floats per row
  float* scale;       // D^-1/2
  float* right;       // room for a right-hand side
  float* root;        // P^1/2, of a chunk when primal
  float* rows;        // B, of a chunk when primal
  float* matrix;
  float* rest;
};

// Calls see(chunk) with chunks of B in `rows` and of P^1/2 in `root`, all of it when dual. False:
// not positive definite.
template <class See>
inline bool factorise(const safecf::RowSystem& a, int64_t factors, float* scratch, Factorised& f,
                      See see) {
  f.dual = a.count < factors;
  f.size = f.dual ? a.count : factors;
  f.row = round_up(f.size, safecf::kPad);
  const int64_t gathered = f.dual ? a.count : kDepth;
  f.scale = scratch;
  f.right = f.scale + a.fixed.width;
  f.root = f.right + a.fixed.width;
  f.rows = f.root + round_up(gathered, safecf::kPad);
  f.matrix = f.rows + gathered * a.fixed.width;
  f.rest = f.matrix + f.size * f.row;

  int not_positive = 0;
  for (int64_t i = 0; i < factors; ++i) {
    not_positive += !(a.shared[i] > 0.0f);
    f.scale[i] = 1.0f / __builtin_sqrtf(a.shared[i]);
  }
  if (not_positive) return false;
  fill(f.scale + factors, 0.0f, a.fixed.width - factors);

  if (f.dual) {
    gather_scaled(a, 0, a.count, f.scale, f.rows, f.root);
    if (f.size <= kFewRows)
      gram_of_few(f.rows, a.fixed.width, f.size, f.matrix, f.row);
    else
      gram({f.rows, a.fixed.width, 1}, f.size, factors, nullptr, Write::kSet, f.matrix, f.row,
           f.rest);
    see(a.count);
  } else {
    for (int64_t j = 0; j < a.count; j += kDepth) {
      const int64_t chunk = min_of(kDepth, a.count - j);
      gather_scaled(a, j, chunk, f.scale, f.rows, f.root);
      gram({f.rows, 1, a.fixed.width}, f.size, chunk, nullptr, j == 0 ? Write::kSet : Write::kAdd,
           f.matrix, f.row, f.rest);
      see(chunk);
    }
  }
  for (int64_t i = 0; i < f.size; ++i) f.matrix[i * f.row + i] += 1.0f;
  return cholesky(f.matrix, f.size, f.row, f.rest);
}

// x := D^-1/2 x; false: not finite
inline bool unscale(const Factorised& f, int64_t width, float* x) {
  for (int64_t i = 0; i < width; i += kLanes) store(x + i, load(x + i) * load(f.scale + i));
  return is_finite(dot(x, x, width));
}

// The right-hand side Y'p:  x = D^-1/2 (I + B'B)^-1 B' P^1/2 1   primal,
//                           x = D^-1/2 B' (I + BB')^-1 P^1/2 1   dual.
inline bool solve_exact(const safecf::RowSystem& a, int64_t factors, float* x, float* scratch) {
  fill(x, 0.0f, a.fixed.width);
  if (a.count == 0) return true;
  Factorised f;
  const bool positive = factorise(a, factors, scratch, f, [&](int64_t chunk) {
    if (!f.dual)
      for (int64_t t = 0; t < chunk; ++t)
        axpy(f.root[t], f.rows + t * a.fixed.width, x, a.fixed.width);
  });
  if (!positive) return false;
  if (f.dual) {
    for (int64_t j = 0; j < f.size; ++j) f.right[j] = f.root[j];
    substitute(f.matrix, f.size, f.row, f.right);
    for (int64_t j = 0; j < f.size; ++j)
      axpy(f.right[j], f.rows + j * a.fixed.width, x, a.fixed.width);
  } else {
    substitute(f.matrix, f.size, f.row, x);
  }
  return unscale(f, a.fixed.width, x);
}

// x := A^-1 x, any right-hand side:  D^-1/2 (I + B'B)^-1 t ,  t = D^-1/2 x   primal,
//                                    D^-1/2 (t - B' (I + BB')^-1 B t)        dual.
inline bool solve_general(const safecf::RowSystem& a, int64_t factors, float* x, float* scratch) {
  Factorised f;
  if (!factorise(a, factors, scratch, f, [](int64_t) {})) return false;
  for (int64_t i = 0; i < a.fixed.width; i += kLanes) store(x + i, load(x + i) * load(f.scale + i));
  if (f.dual) {
    for (int64_t j = 0; j < f.size; ++j)
      f.right[j] = dot(f.rows + j * a.fixed.width, x, a.fixed.width);
    substitute(f.matrix, f.size, f.row, f.right);
    for (int64_t j = 0; j < f.size; ++j)
      axpy(-f.right[j], f.rows + j * a.fixed.width, x, a.fixed.width);
  } else {
    substitute(f.matrix, f.size, f.row, x);
  }
  return unscale(f, a.fixed.width, x);
}

}  // namespace
