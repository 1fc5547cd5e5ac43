// A sparse matrix by rows, in arrays that may change while they are read.
//
// The arrays are the caller's, and another thread may overwrite them during a call. So an offset or
// a column is read once, into a local or into scratch memory, is checked there, and is not read
// again.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/table.hpp"

namespace safecf {

// Throws std::invalid_argument: `what`, and that an array must have changed.
[[noreturn]] void damaged(const std::string& what);

// The value, which the compiler does not read again.
template <class T>
T read_once(const T& value) {
  return __atomic_load_n(&value, __ATOMIC_RELAXED);
}

// What columns name, and how many of them there are.
struct Side {
  const char* name;
  int64_t rows;

  // Throws std::invalid_argument.
  [[noreturn]] void lacks(int64_t column) const;
};

// The entries of a row: [begin, begin + count).
struct Entries {
  int64_t begin, count;
};

// Without weights all entries are one. Offsets are 64-bit.
struct Csr {
  View<const int64_t> offsets;
  View<const int32_t> columns;
  View<const float> weights;

  int64_t rows() const { return offsets.size - 1; }

  // Throws std::invalid_argument where the offsets are not in order or not among the columns.
  Entries entries(int64_t row) const {
    const int64_t begin = read_once(offsets[row]), end = read_once(offsets[row + 1]);
    if (begin < 0 || end < begin || end > columns.size) bad_offsets(row, begin, end);
    return {begin, end - begin};
  }
  View<const float> weights_of(const Entries& entries) const {
    return weights ? weights.slice(entries.begin, entries.count) : weights;
  }
  float weight(int64_t entry) const { return weights ? weights[entry] : 1.0f; }
  int64_t longest_row() const;

  // Copies the columns of these entries into `room`. Throws std::invalid_argument where there are
  // more than it holds, or where one is not among the rows of the other side.
  View<const int32_t> read_columns(const Entries&, const Side&, View<int32_t> room,
                                   const Kernels&) const;

 private:
  [[noreturn]] void bad_offsets(int64_t row, int64_t begin, int64_t end) const;
};

}  // namespace safecf
