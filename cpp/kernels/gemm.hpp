// Products of small and medium matrices from packed panels, by one microkernel.
//
// A (rows x depth) is packed kRows rows at a time, B (depth x columns) kColumns columns at a
// time, both in chunks of kDepth. The microkernel keeps a kRows x kColumns tile of C in registers.
// Tiles at the edges are computed whole on zeros, so that every element of C is summed in the
// same order wherever it stands: in a chunk, one coordinate after the other; then the chunks.
#pragma once

#include "simd.hpp"
#include "table.hpp"

namespace {

using safecf::Operand;
using safecf::Write;

constexpr int kRows = kLanes == 16 ? 12 : 6;
constexpr int kColumns = 2 * kLanes;
constexpr int64_t kDepth = 256;
constexpr int64_t kTile = static_cast<int64_t>(kRows) * kColumns;
constexpr int64_t kMultiplyScratch =
    safecf::scratch<float>(kRows * kDepth) + safecf::scratch<float>(kTile);

inline int64_t packed_size(int64_t depth, int64_t columns) {
  return depth * round_up(columns, kColumns);
}

// Layout: chunks of kDepth; inside, panels of kColumns columns; inside, depth by column.
inline void pack(Operand b, View<const float> scale, int64_t first, int64_t last, View<float> out) {
  const int64_t depth = b.rows, columns = b.columns, padded = round_up(columns, kColumns);
  for (int64_t k0 = 0; k0 < depth; k0 += kDepth) {
    const int64_t chunk = min_of(kDepth, depth - k0);
    for (int64_t panel = first; panel < last; ++panel) {
      const View<float> to = out.slice(k0 * padded + panel * chunk * kColumns, chunk * kColumns);
      const int64_t j0 = panel * kColumns, wide = min_of(kColumns, columns - j0);
      if (b.column_stride == 1 && wide == kColumns) {
        for (int64_t k = 0; k < chunk; ++k) {
          const float* const from = b.at(k0 + k, j0);
          const float s = scale ? scale[k0 + k] : 1.0f;
          store(to, k * kColumns, s * load(from));
          store(to, k * kColumns + kLanes, s * load(from + kLanes));
        }
      } else if (b.row_stride == 1 && wide == kColumns && !scale) {
        transpose({b.at(k0, j0), kColumns, chunk, b.column_stride}, {to.data, chunk, kColumns});
      } else {
        for (int64_t j = 0; j < kColumns; ++j)
          for (int64_t k = 0; k < chunk; ++k)
            to[k * kColumns + j] =
                j < wide ? *b.at(k0 + k, j0 + j) * (scale ? scale[k0 + k] : 1.0f) : 0.0f;
      }
    }
  }
}

// Up to kRows rows of A, depth by row, filled up with zeros.
inline void pack_rows(Operand a, View<float> out) {
  const int64_t tall = a.rows, chunk = a.columns;
  if (a.row_stride == 1 && tall == kRows) {
    for (int64_t k = 0; k < chunk; ++k)
      for (int64_t i = 0; i < kRows; ++i) out[k * kRows + i] = a.data[k * a.column_stride + i];
  } else if (a.column_stride == 1 && tall == kRows) {
    transpose({a.data, kRows, chunk, a.row_stride}, {out.data, chunk, kRows});
  } else {
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t k = 0; k < chunk; ++k) out[k * kRows + i] = i < tall ? *a.at(i, k) : 0.0f;
  }
}

template <Write kWrite>
SAFECF_INLINE Vec combine(const float* old, Vec product) {
  if constexpr (kWrite == Write::kSet)
    return product;
  else if constexpr (kWrite == Write::kAdd)
    return load(old) + product;
  else
    return load(old) - product;
}

// A tile of C from packed rows of A and a panel of B, both `chunk` deep.
template <Write kWrite>
inline void tile(View<const float> rows, View<const float> panel, float* c, int64_t c_stride) {
  SAFECF_ASSERT(rows.size * kColumns == panel.size * kRows);
  const float* a = rows.data;
  const float* b = panel.data;
  Vec left[kRows] = {}, right[kRows] = {};
  for (; a < rows.end(); a += kRows, b += kColumns) {
    const Vec b0 = load(b), b1 = load(b + kLanes);
    SAFECF_UNROLL
    for (int i = 0; i < kRows; ++i) {
      left[i] = fused(a[i], b0, left[i]);
      right[i] = fused(a[i], b1, right[i]);
    }
  }
  SAFECF_UNROLL
  for (int i = 0; i < kRows; ++i) {
    float* const to = c + i * c_stride;
    store(to, combine<kWrite>(to, left[i]));
    store(to + kLanes, combine<kWrite>(to + kLanes, right[i]));
  }
}

// The same where C has fewer rows or columns than a tile.
template <Write kWrite>
inline void edge_tile(View<const float> rows, View<const float> panel, MatrixView<float> c,
                      View<float> whole) {
  if constexpr (kWrite != Write::kSet)
    for (int64_t i = 0; i < c.rows; ++i)
      for (int64_t j = 0; j < c.columns; ++j) whole[i * kColumns + j] = c(i, j);
  tile<kWrite>(rows, panel, whole.data, kColumns);
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.columns; ++j) c(i, j) = whole[i * kColumns + j];
}

// C := or += or -= A times the panels, all of one chunk.
template <Write kWrite>
inline void multiply_chunk(Operand a, const float* panels, MatrixView<float> c,
                           safecf::Arena arena) {
  const int64_t chunk = a.columns;
  const auto rows = arena.take<float>(kRows * kDepth).slice(0, kRows * chunk);
  const auto whole = arena.take<float>(kTile);
  for (int64_t i = 0; i < c.rows; i += kRows) {
    const int64_t tall = min_of(kRows, c.rows - i);
    pack_rows(a.rows_from(i, tall), rows);
    for (int64_t j = 0; j < c.columns; j += kColumns) {
      const int64_t wide = min_of(kColumns, c.columns - j);
      const View<const float> panel(panels + j * chunk, chunk * kColumns);
      const auto part = c.rows_from(i, tall).columns_from(j, wide);
      if (tall == kRows && wide == kColumns)
        tile<kWrite>(rows, panel, part.data, part.stride);
      else
        edge_tile<kWrite>(rows, panel, part, whole);
    }
  }
}

inline void multiply(Operand a, safecf::PackedView b, int64_t first, Write write,
                     MatrixView<float> c, safecf::Arena arena) {
  SAFECF_ASSERT(a.rows == c.rows && a.columns == b.depth);
  SAFECF_ASSERT(first % kColumns == 0 && first + c.columns <= b.columns);
  const int64_t padded = round_up(b.columns, kColumns);
  for (int64_t k0 = 0; k0 < b.depth; k0 += kDepth) {
    const int64_t chunk = min_of(kDepth, b.depth - k0);
    const float* const panels = b.data + k0 * padded + first * chunk;
    const Write now = write == Write::kSet && k0 > 0 ? Write::kAdd : write;
    const auto run = now == Write::kSet   ? multiply_chunk<Write::kSet>
                     : now == Write::kAdd ? multiply_chunk<Write::kAdd>
                                          : multiply_chunk<Write::kSubtract>;
    run(a.columns_from(k0, chunk), panels, c, arena);
  }
}

// Rows of C that one sweep of `gram` covers; what it computes above the diagonal is waste.
constexpr int64_t kBand = 4 * kRows;

inline int64_t gram_scratch(int64_t rows) {
  return kMultiplyScratch + safecf::scratch<float>(kDepth * round_up(rows, kColumns));
}

// Lower triangle of C (rows x rows) := or += or -= A diag(scale) A'.
inline void gram(Operand a, View<const float> scale, Write write, MatrixView<float> c,
                 safecf::Arena arena) {
  SAFECF_ASSERT(c.rows == a.rows && c.columns == a.rows);
  const int64_t rows = a.rows;
  const auto packed = arena.take<float>(kDepth * round_up(rows, kColumns));
  for (int64_t k0 = 0; k0 < a.columns; k0 += kDepth) {
    const int64_t chunk = min_of(kDepth, a.columns - k0);
    const Operand part = a.columns_from(k0, chunk);
    pack(part.transposed(), scale ? scale.slice(k0, chunk) : scale, 0,
         (rows + kColumns - 1) / kColumns, packed.slice(0, packed_size(chunk, rows)));
    const Write now = write == Write::kSet && k0 > 0 ? Write::kAdd : write;
    for (int64_t i = 0; i < rows; i += kBand) {
      const int64_t tall = min_of(kBand, rows - i);
      multiply(part.rows_from(i, tall), {packed.data, chunk, rows}, 0, now,
               c.rows_from(i, tall).columns_from(0, i + tall), arena);
    }
  }
}

}  // namespace
