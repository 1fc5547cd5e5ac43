// Checks of sizes and of memory. They throw std::invalid_argument.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <vector>

#include "records.hpp"

namespace safecf {

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// More than fit into memory, and so few that no size overflows.
constexpr int64_t kMostFactors = 1 << 20;
void check_factors(int64_t factors);

// The columns [first, first + size) are among the factors.
void check_block(int64_t first, int64_t size, int64_t factors);

// The arrays of a record fit each other.
void check(const Csr& matrix);
void check(const Fixed& fixed);
void check(const Rows& rows);
void check(const Report& report);
void check(const Report& report, int64_t rows);
// The systems, their fixed side and the factors fit each other.
void check(const Rows& rows, const Fixed& fixed, MatrixView<const float> factors);

// There is one of each per row; an empty ridge means none.
void check_losses(int64_t rows, View<const float> pair_weight, View<const float> ridge,
                  MatrixView<const float> factors, View<const float> losses);

// The offsets start at 0, ascend, and end at the number of columns.
void check_offsets(const Csr& matrix);

struct Memory {
  uintptr_t begin, end;
};

// The memory of an array, or of a record's arrays.
struct Arrays : std::vector<Memory> {
  template <class T>
  Arrays(View<T> array) {
    add(array.data, array.size * static_cast<int64_t>(sizeof(T)));
  }
  template <class T>
  Arrays(MatrixView<T> array) : Arrays(View<T>(array.data, array.rows * array.stride)) {}
  Arrays(const Csr& matrix);
  Arrays(const Rows& rows);
  Arrays(const Fixed& fixed);
  Arrays(const Report& report);

  void add(const void* data, int64_t bytes);
  void add(const Arrays& others) { insert(end(), others.begin(), others.end()); }
};

// No output overlaps an input or another output.
void check_apart(std::initializer_list<Arrays> outputs, std::initializer_list<Arrays> inputs);

}  // namespace safecf
