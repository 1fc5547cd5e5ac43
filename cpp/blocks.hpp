// Blocks of rows: the tasks of the parallel loop over a sparse matrix.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "records.hpp"

namespace safecf {

// Rows per block: enough for the rotations to run at the speed of a matrix product.
constexpr int64_t kBlockRows = 96;

struct Block {
  int64_t first, last;
  int64_t rows() const { return last - first; }
};

// Cuts the rows into blocks of at most kBlockRows rows and about 1/256 of the interactions, so
// that no thread waits for another at the end. The blocks depend on the matrix alone.
inline std::vector<Block> row_blocks(const Csr& matrix) {
  const int64_t rows = matrix.rows(), share = matrix.offsets[rows] / 256 + 1;
  std::vector<Block> blocks;
  for (int64_t first = 0; first < rows;) {
    int64_t last = first + 1;
    while (last < std::min(first + kBlockRows, rows) &&
           matrix.offsets[last + 1] - matrix.offsets[first] <= share)
      ++last;
    blocks.push_back({first, last});
    first = last;
  }
  return blocks;
}

}  // namespace safecf
