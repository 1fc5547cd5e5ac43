// Products of small and medium matrices from packed panels: one microkernel for everything.
//
// A (rows x depth) is packed kRows rows at a time, B (depth x columns) kColumns columns at a
// time, both in chunks of kDepth. The microkernel keeps a kRows x kColumns tile of C in registers.
// Tiles at the edges are computed whole on zeros, so that every element of C is summed in the
// same order wherever it stands.
#pragma once

#include "kernels.hpp"
#include "simd.hpp"

namespace {

using safecf::Strided;
using safecf::Write;

constexpr int kRows = kLanes == 16 ? 12 : 6;
constexpr int kColumns = 2 * kLanes;
constexpr int64_t kDepth = 256;
constexpr int64_t kTile = static_cast<int64_t>(kRows) * kColumns;
constexpr int64_t kMultiplyScratch = kRows * kDepth + kTile;

inline int64_t packed_size(int64_t depth, int64_t columns) {
  return depth * round_up(columns, kColumns);
}

// Layout: chunks of kDepth; inside, panels of kColumns columns; inside, depth by column.
inline void pack(Strided b, int64_t depth, int64_t columns, const float* scale, int64_t first_panel,
                 int64_t last_panel, float* out) {
  const int64_t padded = round_up(columns, kColumns);
  for (int64_t k0 = 0; k0 < depth; k0 += kDepth) {
    const int64_t chunk = min_of(kDepth, depth - k0);
    for (int64_t panel = first_panel; panel < last_panel; ++panel) {
      float* to = out + k0 * padded + panel * chunk * kColumns;
      const int64_t j0 = panel * kColumns, wide = min_of(kColumns, columns - j0);
      if (b.column == 1 && wide == kColumns) {
        for (int64_t k = 0; k < chunk; ++k, to += kColumns) {
          const float* from = b.data + (k0 + k) * b.row + j0;
          const float s = scale ? scale[k0 + k] : 1.0f;
          store(to, s * load(from));
          store(to + kLanes, s * load(from + kLanes));
        }
        continue;
      }
      if (b.row == 1 && wide == kColumns && !scale) {
        transpose(b.data + k0 + j0 * b.column, b.column, kColumns, chunk, to, kColumns);
        continue;
      }
      for (int64_t j = 0; j < kColumns; ++j) {
        const float* from = b.data + k0 * b.row + (j0 + j) * b.column;
        for (int64_t k = 0; k < chunk; ++k)
          to[k * kColumns + j] = j < wide ? from[k * b.row] * (scale ? scale[k0 + k] : 1.0f) : 0.0f;
      }
    }
  }
}

inline void pack_rows(Strided a, int64_t i0, int64_t tall, int64_t k0, int64_t chunk, float* out) {
  if (a.row == 1 && tall == kRows) {
    for (int64_t k = 0; k < chunk; ++k)
      for (int64_t i = 0; i < kRows; ++i) out[k * kRows + i] = a.data[(k0 + k) * a.column + i0 + i];
    return;
  }
  if (a.column == 1 && tall == kRows) {
    transpose(a.data + i0 * a.row + k0, a.row, kRows, chunk, out, kRows);
    return;
  }
  for (int64_t i = 0; i < kRows; ++i) {
    const float* from = a.data + (i0 + i) * a.row + k0 * a.column;
    if (i < tall)
      for (int64_t k = 0; k < chunk; ++k) out[k * kRows + i] = from[k * a.column];
    else
      for (int64_t k = 0; k < chunk; ++k) out[k * kRows + i] = 0.0f;
  }
}

template <Write kWrite>
inline Vec combine(Vec old, Vec product) {
  if (kWrite == Write::kSet) return product;
  return kWrite == Write::kAdd ? old + product : old - product;
}

template <Write kWrite>
inline void tile(int64_t chunk, const float* a, const float* b, float* c, int64_t c_row) {
  Vec left[kRows] = {}, right[kRows] = {};
  for (int64_t k = 0; k < chunk; ++k, a += kRows, b += kColumns) {
    const Vec b0 = load(b), b1 = load(b + kLanes);
    SAFECF_UNROLL
    for (int i = 0; i < kRows; ++i) {
      left[i] += a[i] * b0;
      right[i] += a[i] * b1;
    }
  }
  SAFECF_UNROLL
  for (int i = 0; i < kRows; ++i) {
    float* const to = c + i * c_row;
    store(to, combine<kWrite>(kWrite == Write::kSet ? Vec{} : load(to), left[i]));
    store(to + kLanes,
          combine<kWrite>(kWrite == Write::kSet ? Vec{} : load(to + kLanes), right[i]));
  }
}

template <Write kWrite>
inline void edge_tile(int64_t chunk, const float* a, const float* b, int64_t tall, int64_t wide,
                      float* c, int64_t c_row, float* whole) {
  for (int64_t i = 0; i < tall; ++i)
    for (int64_t j = 0; j < wide; ++j) whole[i * kColumns + j] = c[i * c_row + j];
  tile<kWrite>(chunk, a, b, whole, kColumns);
  for (int64_t i = 0; i < tall; ++i)
    for (int64_t j = 0; j < wide; ++j) c[i * c_row + j] = whole[i * kColumns + j];
}

template <Write kWrite>
inline void multiply_chunk(Strided a, int64_t rows, int64_t k0, int64_t chunk, const float* panels,
                           int64_t first, int64_t last, float* c, int64_t c_row, float* scratch) {
  float* const whole = scratch + kRows * kDepth;
  for (int64_t i0 = 0; i0 < rows; i0 += kRows) {
    const int64_t tall = min_of(kRows, rows - i0);
    pack_rows(a, i0, tall, k0, chunk, scratch);
    for (int64_t j0 = first; j0 < last; j0 += kColumns) {
      const int64_t wide = min_of(kColumns, last - j0);
      const float* const b = panels + j0 * chunk;
      float* const to = c + i0 * c_row + (j0 - first);
      if (tall == kRows && wide == kColumns)
        tile<kWrite>(chunk, scratch, b, to, c_row);
      else
        edge_tile<kWrite>(chunk, scratch, b, tall, wide, to, c_row, whole);
    }
  }
}

inline void multiply(Strided a, int64_t rows, int64_t depth, const float* packed, int64_t columns,
                     int64_t first, int64_t last, Write write, float* c, int64_t c_row,
                     float* scratch) {
  const int64_t padded = round_up(columns, kColumns);
  for (int64_t k0 = 0; k0 < depth; k0 += kDepth) {
    const int64_t chunk = min_of(kDepth, depth - k0);
    const float* const panels = packed + k0 * padded;
    const Write now = write == Write::kSet && k0 > 0 ? Write::kAdd : write;
    const auto run = now == Write::kSet   ? multiply_chunk<Write::kSet>
                     : now == Write::kAdd ? multiply_chunk<Write::kAdd>
                                          : multiply_chunk<Write::kSubtract>;
    run(a, rows, k0, chunk, panels, first, last, c, c_row, scratch);
  }
}

// Rows of C that one sweep of `gram` covers; what it computes above the diagonal is waste.
constexpr int64_t kBand = 4 * kRows;

inline int64_t gram_scratch(int64_t rows) {
  return kMultiplyScratch + kDepth * round_up(rows, kColumns);
}

// Lower triangle of C (rows x rows) := or += or -= A diag(scale) A'.
inline void gram(Strided a, int64_t rows, int64_t depth, const float* scale, Write write, float* c,
                 int64_t c_row, float* scratch) {
  float* const packed = scratch + kMultiplyScratch;
  for (int64_t k0 = 0; k0 < depth; k0 += kDepth) {
    const int64_t chunk = min_of(kDepth, depth - k0);
    const Strided part = {a.data + k0 * a.column, a.row, a.column};
    const Strided transposed = {part.data, a.column, a.row};
    pack(transposed, chunk, rows, scale ? scale + k0 : nullptr, 0, (rows + kColumns - 1) / kColumns,
         packed);
    const Write now = write == Write::kSet && k0 > 0 ? Write::kAdd : write;
    for (int64_t i0 = 0; i0 < rows; i0 += kBand) {
      const int64_t tall = min_of(kBand, rows - i0);
      const Strided band = {part.data + i0 * a.row, a.row, a.column};
      multiply(band, tall, chunk, packed, rows, 0, i0 + tall, now, c + i0 * c_row, c_row, scratch);
    }
  }
}

}  // namespace
