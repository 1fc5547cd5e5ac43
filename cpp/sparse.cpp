// The interactions seen from the other side.
#include <algorithm>
#include <vector>

#include "core.hpp"

namespace safecf {
namespace {

// Calls put(to, row, entry) for every entry, where `to` is its place in the transpose, whose
// offsets are written as well. Entries of a row of the transpose come in ascending order.
template <class Put>
void for_transposed(const Csr& matrix, View<int64_t> offsets, Put put) {
  const int64_t entries = matrix.offsets[matrix.rows()];
  std::fill(offsets.begin(), offsets.end(), 0);
  for (int64_t e = 0; e < entries; ++e) ++offsets[matrix.columns[e] + 1];
  for (int64_t column = 1; column < offsets.size; ++column) offsets[column] += offsets[column - 1];
  for (int64_t row = 0; row < matrix.rows(); ++row)
    for (int64_t e = matrix.offsets[row]; e < matrix.offsets[row + 1]; ++e)
      put(offsets[matrix.columns[e]]++, row, e);
  // every offset is now that of its row's end, where the next row starts
  std::copy_backward(offsets.begin(), offsets.end() - 1, offsets.end());
  offsets[0] = 0;
}

}  // namespace

void transpose(const Csr& matrix, const MutableCsr& transposed) {
  for_transposed(matrix, transposed.offsets, [&](int64_t to, int64_t row, int64_t e) {
    transposed.columns[to] = static_cast<int32_t>(row);
    if (transposed.weights) transposed.weights[to] = matrix.weights[e];
  });
}

void positions(const Csr& matrix, int64_t num_columns, View<uint32_t> positions) {
  std::vector<int64_t> offsets(num_columns + 1);
  for_transposed(matrix, {offsets.data(), num_columns + 1},
                 [&](int64_t to, int64_t, int64_t e) { positions[to] = static_cast<uint32_t>(e); });
}

}  // namespace safecf
