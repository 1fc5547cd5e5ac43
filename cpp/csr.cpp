#include "csr.hpp"

#include <algorithm>
#include <stdexcept>

namespace safecf {

void damaged(const std::string& what) {
  throw std::invalid_argument(what + "; it was changed after it was checked, or is damaged");
}

void Side::lacks(int64_t column) const {
  damaged("the matrix has column " + std::to_string(column) + ", where " + name + " has " +
          std::to_string(rows) + " rows");
}

void Csr::bad_offsets(int64_t row, int64_t begin, int64_t end) const {
  damaged("row " + std::to_string(row) + " of the matrix goes from entry " + std::to_string(begin) +
          " to " + std::to_string(end) + ", where it has " + std::to_string(columns.size) +
          " entries");
}

int64_t Csr::longest_row() const {
  int64_t longest = 0;
  for (int64_t row = 0; row < rows(); ++row) longest = std::max(longest, entries(row).count);
  return longest;
}

View<const int32_t> Csr::read_columns(const Entries& entries, const Side& side, View<int32_t> room,
                                      const Kernels& kernels) const {
  if (entries.count > room.size)
    damaged("a row of the matrix has " + std::to_string(entries.count) + " entries, where " +
            std::to_string(room.size) + " were the most");
  const auto found = room.slice(0, entries.count);
  const auto limit = static_cast<uint32_t>(std::min(side.rows, int64_t{1} << 31));
  const auto from = columns.slice(entries.begin, entries.count);
  // as unsigned numbers, of which the negative ones are beyond the limit
  if (!kernels.read_indices({reinterpret_cast<const uint32_t*>(from.data), from.size}, limit,
                            {reinterpret_cast<uint32_t*>(found.data), found.size}))
    side.lacks(*std::find_if(found.begin(), found.end(),
                             [&](int32_t column) { return column < 0 || column >= side.rows; }));
  return found;
}

}  // namespace safecf
