// Blocked Cholesky factorisation and the exact solution of one row.
#pragma once

#include "gather.hpp"
#include "gemm.hpp"

namespace {

constexpr int64_t kBlock = 32;

// L of the leading size x size block of `a` and its inverse, both by rows of kBlock floats.
inline bool factor_block(const float* a, int64_t a_row, int64_t size, float* lower,
                         float* inverse) {
  for (int64_t i = 0; i < kBlock; ++i)
    for (int64_t j = 0; j < kBlock; ++j)
      lower[i * kBlock + j] = i < size && j <= i ? a[i * a_row + j] : (i == j ? 1.0f : 0.0f);
  float column[kBlock];
  for (int64_t j = 0; j < size; ++j) {
    const float pivot = lower[j * kBlock + j];
    if (!(pivot > 0.0f)) return false;
    const float root = __builtin_sqrtf(pivot);
    for (int64_t i = 0; i < kBlock; ++i) column[i] = i > j ? lower[i * kBlock + j] / root : 0.0f;
    lower[j * kBlock + j] = root;
    for (int64_t i = j + 1; i < size; ++i) {
      axpy(-column[i], column, lower + i * kBlock, kBlock);
      lower[i * kBlock + j] = column[i];
    }
  }
  for (int64_t i = 0; i < kBlock; ++i) {
    float* const row = inverse + i * kBlock;
    for (int64_t j = 0; j < kBlock; ++j) row[j] = i == j ? 1.0f : 0.0f;
    for (int64_t t = 0; t < i; ++t) axpy(-lower[i * kBlock + t], inverse + t * kBlock, row, kBlock);
    const float scale = 1.0f / lower[i * kBlock + i];
    for (int64_t j = 0; j < kBlock; ++j) row[j] *= scale;
  }
  return true;
}

inline int64_t cholesky_scratch(int64_t size) {
  return 2 * kBlock * kBlock + packed_size(kBlock, kBlock) + size * kBlock + gram_scratch(size);
}

// A = L L' in place, lower triangle by rows. False: not positive definite.
inline bool cholesky(float* a, int64_t size, int64_t a_row, float* scratch) {
  float* const lower = scratch;
  float* const inverse = lower + kBlock * kBlock;
  float* const packed = inverse + kBlock * kBlock;
  float* const below = packed + packed_size(kBlock, kBlock);
  float* const rest = below + size * kBlock;
  for (int64_t k = 0; k < size; k += kBlock) {
    const int64_t width = min_of(kBlock, size - k), left = size - k - width;
    float* const corner = a + k * a_row + k;
    if (!factor_block(corner, a_row, width, lower, inverse)) return false;
    for (int64_t i = 0; i < width; ++i)
      for (int64_t j = 0; j <= i; ++j) corner[i * a_row + j] = lower[i * kBlock + j];
    if (left == 0) break;
    // L21 = A21 L11^-T, then A22 -= L21 L21'
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
  const int64_t gathered = max_of(kDepth, size);
  return width * (2 + gathered) + round_up(gathered, safecf::kPad) +
         size * round_up(size, safecf::kPad) + cholesky_scratch(size);
}

// out_j = sqrt(p_j) y_j D^-1/2 for `count` rows, and root_j = sqrt(p_j)
inline void gather_scaled(const safecf::RowSystem& a, int64_t first, int64_t count,
                          const float* scale, float* out, float* root) {
  for (int64_t j = 0; j < count; ++j) {
    if (first + j + kAhead < a.count)
      prefetch_row(a.fixed + a.columns[first + j + kAhead] * a.width, a.width);
    const float* const row = a.fixed + a.columns[first + j] * a.width;
    root[j] = __builtin_sqrtf(a.pairs[first + j]);
    for (int64_t i = 0; i < a.width; i += kLanes)
      store(out + j * a.width + i, root[j] * load(row + i) * load(scale + i));
  }
}

// With B = P^1/2 Y D^-1/2:  x = D^-1/2 (I + B'B)^-1 B' P^1/2 1   for count >= factors,
//                           x = D^-1/2 B' (I + BB')^-1 P^1/2 1   for count < factors.
inline bool solve_exact(const safecf::RowSystem& a, int64_t factors, float* x, float* scratch) {
  const int64_t width = a.width;
  const bool dual = a.count < factors;
  const int64_t size = dual ? a.count : factors, row = round_up(size, safecf::kPad);
  const int64_t gathered = dual ? a.count : kDepth;
  float* const scale = scratch;
  float* const right = scale + width;
  float* const root = right + width;
  float* const rows = root + round_up(gathered, safecf::kPad);
  float* const matrix = rows + gathered * width;
  float* const rest = matrix + size * row;

  fill(x, 0.0f, width);
  if (a.count == 0) return true;
  for (int64_t i = 0; i < factors; ++i) {
    if (!(a.shared[i] > 0.0f)) return false;
    scale[i] = 1.0f / __builtin_sqrtf(a.shared[i]);
  }
  fill(scale + factors, 0.0f, width - factors);

  if (dual) {
    gather_scaled(a, 0, a.count, scale, rows, root);
    gram({rows, width, 1}, size, factors, nullptr, Write::kSet, matrix, row, rest);
    for (int64_t j = 0; j < size; ++j) right[j] = root[j];
  } else {
    fill(right, 0.0f, width);
    for (int64_t j = 0; j < a.count; j += kDepth) {
      const int64_t chunk = min_of(kDepth, a.count - j);
      gather_scaled(a, j, chunk, scale, rows, root);
      gram({rows, 1, width}, size, chunk, nullptr, j == 0 ? Write::kSet : Write::kAdd, matrix, row,
           rest);
      for (int64_t t = 0; t < chunk; ++t) axpy(root[t], rows + t * width, right, width);
    }
  }
  for (int64_t i = 0; i < size; ++i) matrix[i * row + i] += 1.0f;
  if (!cholesky(matrix, size, row, rest)) return false;
  substitute(matrix, size, row, right);

  if (dual)
    for (int64_t j = 0; j < size; ++j) axpy(right[j], rows + j * width, x, width);
  else
    for (int64_t i = 0; i < factors; ++i) x[i] = right[i];
  for (int64_t i = 0; i < width; i += kLanes) store(x + i, load(x + i) * load(scale + i));
  return is_finite(dot(x, x, width));
}

}  // namespace
