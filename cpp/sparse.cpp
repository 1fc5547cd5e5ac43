// The interactions seen from the other side.
#include <algorithm>
#include <limits>
#include <vector>

#include "checks.hpp"
#include "core.hpp"

namespace safecf {
namespace {

// A row of the transpose: where its next entry goes, and where it ends.
struct Room {
  int64_t next, end;
};

// Calls put(to, row, entry) for every entry, where `to` is its place in the transpose; returns the
// rows of the transpose. Their entries come in ascending order. Columns are read twice: those that
// have changed in between find no room.
template <class Put>
std::vector<Room> for_transposed(const Csr& matrix, int64_t num_columns, Put put) {
  std::vector<Room> rooms(static_cast<size_t>(num_columns));
  const auto room_of = [&](int64_t entry) -> Room& {
    const int64_t column = read_once(matrix.columns[entry]);
    if (column < 0 || column >= num_columns) Side{"the transpose", num_columns}.lacks(column);
    return rooms[column];
  };
  for (int64_t e = 0; e < matrix.columns.size; ++e) ++room_of(e).end;
  int64_t before = 0, found = 0;
  for (Room& room : rooms) {
    room.next = before;
    before = room.end += before;
  }
  for (int64_t row = 0; row < matrix.rows(); ++row) {
    const Entries entries = matrix.entries(row);
    for (int64_t e = entries.begin; e < entries.begin + entries.count; ++e) {
      Room& room = room_of(e);
      if (room.next == room.end) damaged("the matrix has other entries than before");
      put(room.next++, row, e);
      ++found;
    }
  }
  if (found != matrix.columns.size) damaged("the matrix has other entries than before");
  return rooms;
}

// Columns are numbers of 32 bits.
bool fits(int64_t count) { return 0 <= count && count <= int64_t{1} << 31; }

}  // namespace

void transpose(const Csr& matrix, const MutableCsr& transposed) {
  check(matrix);
  const int64_t entries = matrix.columns.size, num_columns = transposed.offsets.size - 1;
  require(fits(num_columns) && fits(matrix.rows()),
          "the matrix has more than 2^31 rows or columns");
  require(transposed.columns.size == entries && !transposed.weights == !matrix.weights &&
              (!transposed.weights || transposed.weights.size == entries),
          "the transpose needs arrays of the same length");
  check_apart({transposed.offsets, transposed.columns, transposed.weights}, {matrix});
  const auto rooms =
      for_transposed(matrix, num_columns, [&](int64_t to, int64_t row, int64_t entry) {
        transposed.columns[to] = static_cast<int32_t>(row);
        if (transposed.weights) transposed.weights[to] = matrix.weights[entry];
      });
  transposed.offsets[0] = 0;
  for (int64_t column = 0; column < num_columns; ++column)
    transposed.offsets[column + 1] = rooms[column].end;
}

void positions(const Csr& matrix, int64_t num_columns, View<uint32_t> positions) {
  check(matrix);
  require(fits(num_columns), "num_columns is negative or more than 2^31");
  require(positions.size == matrix.columns.size, "one position per entry is needed");
  require(positions.size <= std::numeric_limits<uint32_t>::max(),
          "the matrix has too many entries for positions of 32 bits");
  check_apart({positions}, {matrix});
  for_transposed(matrix, num_columns, [&](int64_t to, int64_t, int64_t entry) {
    positions[to] = static_cast<uint32_t>(entry);
  });
}

}  // namespace safecf
