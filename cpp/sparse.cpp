// The interactions seen from the other side.
#include <algorithm>

#include "core.hpp"

namespace safecf {

void transpose(const Csr& matrix, int64_t columns, int64_t* offsets, int32_t* indices,
               float* weights) {
  const int64_t entries = matrix.offsets[matrix.rows];
  std::fill_n(offsets, columns + 1, int64_t{0});
  for (int64_t e = 0; e < entries; ++e) ++offsets[matrix.columns[e] + 1];
  for (int64_t column = 0; column < columns; ++column) offsets[column + 1] += offsets[column];
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t e = matrix.offsets[row]; e < matrix.offsets[row + 1]; ++e) {
      const int64_t to = offsets[matrix.columns[e]]++;
      indices[to] = static_cast<int32_t>(row);
      if (weights) weights[to] = matrix.weights[e];
    }
  }
  // every offset now stands at its row's end, which is where the next row starts
  std::copy_backward(offsets, offsets + columns, offsets + columns + 1);
  offsets[0] = 0;
}

}  // namespace safecf
