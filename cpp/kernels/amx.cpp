// Products on AMX's tiles of bfloat16.
//
// Every number is split into two of bfloat16, a = high + low up to 2^-16 |a|, and a b becomes
// high high + high low + low high: three products on tiles, five times as fast as float32 on
// vectors.
//
// A tile has 16 rows of 16 words; a word pairs the numbers of coordinates k and k + 16 of a row of
// A, or of a column of B. A block is 32 rows of A, or 32 columns of B, by 32 coordinates: four
// tiles, the high parts of its first and second half, then the low ones. Blocks at the edges are
// filled up with zeros.
#include "simd.hpp"
#include "table.hpp"

namespace {

using safecf::Operand;
using safecf::Write;

constexpr int64_t kSide = 32, kTileRows = 16, kTileWords = 256, kBlockWords = 4 * kTileWords;
constexpr int64_t kChunk = 512;  // of coordinates, whose products are added up in tiles
constexpr int64_t kTall = 192;  // rows of A that are multiplied with a panel while it is in a cache
constexpr int kTileBytes = 64;  // per row of a tile

inline int64_t blocks_of(int64_t count) { return (count + kSide - 1) / kSide; }
inline int64_t packed_size(int64_t depth, int64_t columns) {
  return blocks_of(depth) * blocks_of(columns) * kBlockWords;
}

// While it lives, this thread has eight whole tiles.
class Tiles {
 public:
  Tiles(const Tiles&) = delete;
  Tiles() {
    struct alignas(64) {
      uint8_t palette = 1, start = 0, reserved[14] = {};
      uint16_t bytes[16] = {};
      uint8_t rows[16] = {};
    } whole;
    for (int tile = 0; tile < 8; ++tile) {
      whole.bytes[tile] = kTileBytes;
      whole.rows[tile] = kTileRows;
    }
    _tile_loadconfig(&whole);
  }
  ~Tiles() { _tile_release(); }
};

// Numbers whose upper halves are the nearest ones of bfloat16.
SAFECF_INLINE Words rounded(Vec v) { return reinterpret_cast<Words>(v) + 0x8000u; }
SAFECF_INLINE Words upper_half(Words words) { return words & 0xFFFF0000u; }
SAFECF_INLINE void store_pairs(uint32_t* to, Words first, Words second) {
  *reinterpret_cast<UnalignedWords*>(to) = first >> 16 | upper_half(second);
}

// A row of words of the high and of the low tile.
SAFECF_INLINE void split(Vec first, Vec second, uint32_t* high, uint32_t* low) {
  const Words a = rounded(first), b = rounded(second);
  store_pairs(high, a, b);
  store_pairs(low, rounded(first - reinterpret_cast<Vec>(upper_half(a))),
              rounded(second - reinterpret_cast<Vec>(upper_half(b))));
}

// 16 numbers of row i from column j on, zeros where there are none.
SAFECF_INLINE Vec part_of_row(Operand m, int64_t i, int64_t j) {
  if (i >= m.rows) return Vec{};
  if (m.column_stride == 1 && j + kLanes <= m.columns) return load(m.at(i, j));
  Vec found = {};
  for (int64_t n = 0; n < kLanes && j + n < m.columns; ++n) found[n] = *m.at(i, j + n);
  return found;
}

// The block of diag(scale) B at row k, column j.
inline void pack_block(Operand b, View<const float> scale, int64_t k, int64_t j, uint32_t* block) {
  const auto row = [&](int64_t i, int64_t column) SAFECF_ALWAYS {
    const Vec found = part_of_row(b, i, column);
    return scale && i < b.rows ? scale[i] * found : found;
  };
  for (int64_t half = 0; half < 2; ++half, block += kTileWords)
    for (int64_t i = 0; i < kTileRows; ++i) {
      uint32_t* const to = block + i * kTileRows;
      const int64_t column = j + half * kTileRows;
      split(row(k + i, column), row(k + i + kTileRows, column), to, to + 2 * kTileWords);
    }
}

inline void transpose_tile(uint32_t* tile) {
  Vec rows[kLanes];
  float* const words = reinterpret_cast<float*>(tile);
  SAFECF_UNROLL
  for (int i = 0; i < kLanes; ++i) rows[i] = load(words + i * kLanes);
  transpose(rows);
  SAFECF_UNROLL
  for (int i = 0; i < kLanes; ++i) store(words + i * kLanes, rows[i]);
}

// The block of A at row i, column k.
inline void pack_row_block(Operand a, int64_t i, int64_t k, uint32_t* block) {
  if (a.row_stride == 1) {
    pack_block(a.transposed(), {}, k, i, block);
    for (int64_t tile = 0; tile < 4; ++tile) transpose_tile(block + tile * kTileWords);
    return;
  }
  for (int64_t half = 0; half < 2; ++half, block += kTileWords)
    for (int64_t row = 0; row < kTileRows; ++row) {
      uint32_t* const to = block + row * kTileRows;
      const int64_t from = i + half * kTileRows + row;
      split(part_of_row(a, from, k), part_of_row(a, from, k + kTileRows), to, to + 2 * kTileWords);
    }
}

// Layout: chunks of coordinates; inside, panels of columns; inside, blocks.
inline void pack(Operand b, View<const float> scale, int64_t first, int64_t last, View<float> out) {
  uint32_t* chunk = reinterpret_cast<uint32_t*>(out.data);
  for (int64_t k0 = 0; k0 < b.rows; k0 += kChunk) {
    const int64_t deep = blocks_of(min_of(kChunk, b.rows - k0));
    for (int64_t panel = first; panel < last; ++panel)
      for (int64_t block = 0; block < deep; ++block)
        pack_block(b, scale, k0 + block * kSide, panel * kSide,
                   chunk + (panel * deep + block) * kBlockWords);
    chunk += blocks_of(b.columns) * deep * kBlockWords;
  }
}

// sums = the product of `deep` blocks of 32 rows of A with as many of 32 columns of B.
SAFECF_NOINLINE void multiply_blocks(const uint32_t* a, const uint32_t* b, int64_t deep,
                                     float* sums) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t block = 0; block < deep; ++block, a += kBlockWords, b += kBlockWords) {
    _tile_loadd(4, a, kTileBytes);
    _tile_loadd(5, a + kTileWords, kTileBytes);
    _tile_loadd(6, b + 2 * kTileWords, kTileBytes);
    _tile_loadd(7, b + 3 * kTileWords, kTileBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(6, b, kTileBytes);
    _tile_loadd(7, b + kTileWords, kTileBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(4, a + 2 * kTileWords, kTileBytes);
    _tile_loadd(5, a + 3 * kTileWords, kTileBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  constexpr int kStride = 4 * kSide;  // bytes
  _tile_stored(0, sums, kStride);
  _tile_stored(1, sums + kTileRows, kStride);
  _tile_stored(2, sums + kTileRows * kSide, kStride);
  _tile_stored(3, sums + kTileRows * kSide + kTileRows, kStride);
}

// c := or += or -= the sums, as far as c goes.
inline void write_block(const float* sums, Write write, MatrixView<float> c) {
  const float sign = write == Write::kSubtract ? -1.0f : 1.0f;
  for (int64_t i = 0; i < c.rows; ++i, sums += kSide) {
    float* const to = c.row(i).data;
    if (c.columns < kSide) {
      for (int64_t j = 0; j < c.columns; ++j)
        to[j] = (write == Write::kSet ? 0.0f : to[j]) + sign * sums[j];
      continue;
    }
    SAFECF_UNROLL
    for (int64_t j = 0; j < kSide; j += kLanes) {
      const Vec old = write == Write::kSet ? Vec{} : load(to + j);
      store(to + j, old + sign * load(sums + j));
    }
  }
}

constexpr int64_t kMultiplyScratch =
    safecf::scratch<uint32_t>(kTall * kChunk) + safecf::scratch<float>(kSide * kSide);

inline void multiply(Operand a, safecf::PackedView b, int64_t first, Write write,
                     MatrixView<float> c, safecf::Arena arena) {
  SAFECF_ASSERT(a.rows == c.rows && a.columns == b.depth);
  SAFECF_ASSERT(first % kSide == 0 && first + c.columns <= b.columns);
  const Tiles here;
  const auto rows = arena.take<uint32_t>(kTall * kChunk);
  const auto sums = arena.take<float>(kSide * kSide);
  for (int64_t i0 = 0; i0 < c.rows; i0 += kTall) {
    const int64_t tall = min_of(kTall, c.rows - i0);
    const uint32_t* chunk = reinterpret_cast<const uint32_t*>(b.data);
    for (int64_t k0 = 0; k0 < b.depth; k0 += kChunk) {
      const int64_t deep = blocks_of(min_of(kChunk, b.depth - k0)), row_words = deep * kBlockWords;
      for (int64_t i = 0; i < blocks_of(tall); ++i)
        for (int64_t block = 0; block < deep; ++block)
          pack_row_block(a, i0 + i * kSide, k0 + block * kSide,
                         rows.data + i * row_words + block * kBlockWords);
      const Write now = write == Write::kSet && k0 > 0 ? Write::kAdd : write;
      for (int64_t j = 0; j < c.columns; j += kSide) {
        const auto panel = c.columns_from(j, min_of(kSide, c.columns - j));
        for (int64_t i = 0; i < tall; i += kSide) {
          multiply_blocks(rows.data + i / kSide * row_words,
                          chunk + (first + j) / kSide * row_words, deep, sums.data);
          write_block(sums.data, now, panel.rows_from(i0 + i, min_of(kSide, tall - i)));
        }
      }
      chunk += blocks_of(b.columns) * row_words;
    }
  }
}

inline int64_t gram_scratch(int64_t rows) {
  return safecf::scratch<uint32_t>(packed_size(kChunk, rows)) +
         safecf::scratch<uint32_t>(kSide * kChunk) + safecf::scratch<float>(kSide * kSide);
}

// Lower triangle of C (rows x rows) := or += or -= A diag(scale) A'.
inline void gram(Operand a, View<const float> scale, Write write, MatrixView<float> c,
                 safecf::Arena arena) {
  SAFECF_ASSERT(c.rows == a.rows && c.columns == a.rows);
  const Tiles here;
  const auto columns = arena.take<float>(packed_size(kChunk, a.rows));
  const auto rows = arena.take<uint32_t>(kSide * kChunk);
  const auto sums = arena.take<float>(kSide * kSide);
  for (int64_t k0 = 0; k0 < a.columns; k0 += kChunk) {
    const int64_t depth = min_of(kChunk, a.columns - k0), deep = blocks_of(depth);
    const Operand part = a.columns_from(k0, depth);
    pack(part.transposed(), scale ? scale.slice(k0, depth) : scale, 0, blocks_of(a.rows), columns);
    const Write now = write == Write::kSet && k0 > 0 ? Write::kAdd : write;
    for (int64_t i = 0; i < a.rows; i += kSide) {
      const auto band = c.rows_from(i, min_of(kSide, a.rows - i));
      for (int64_t block = 0; block < deep; ++block)
        pack_row_block(part, i, block * kSide, rows.data + block * kBlockWords);
      for (int64_t j = 0; j <= i; j += kSide) {
        multiply_blocks(
            rows.data,
            reinterpret_cast<const uint32_t*>(columns.data) + j / kSide * deep * kBlockWords, deep,
            sums.data);
        write_block(sums.data, now, band.columns_from(j, min_of(kSide, a.rows - j)));
      }
    }
  }
}

}  // namespace

namespace safecf {

extern const Products products_amx;
constinit const Products products_amx = {
    .panel = kSide,
    .packed_size = packed_size,
    .pack = pack,
    .multiply = multiply,
    .multiply_scratch = kMultiplyScratch,
    .gram = gram,
    .gram_scratch = gram_scratch,
};

}  // namespace safecf
