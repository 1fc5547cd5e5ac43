// Arrays with their extents. Debug builds check every index and every slice.
//
// The kernels are compiled once per instruction set and share these types, so that nothing here may
// be emitted as a function of its own: all members are always inlined.
#pragma once

#include <stdint.h>

#define SAFECF_ALWAYS __attribute__((always_inline))  // of a lambda
#define SAFECF_INLINE inline SAFECF_ALWAYS

#if !defined(NDEBUG) && !defined(SAFECF_DEBUG)
#define SAFECF_DEBUG
#endif
#ifdef SAFECF_DEBUG
#define SAFECF_ASSERT(condition) \
  ((condition) ? (void)0 : ::safecf::assertion_failed(#condition, __FILE__, __LINE__))
#else
#define SAFECF_ASSERT(condition) ((void)0)
#endif

namespace safecf {

// Prints the condition and its place, and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

// `size` values in a row. A view without data stands for an optional array that is not there.
template <class T>
struct View {
  T* data;
  int64_t size;

  SAFECF_INLINE constexpr View() : data(nullptr), size(0) {}
  SAFECF_INLINE constexpr View(T* data, int64_t size) : data(data), size(size) {}
  template <class U>
    requires(__is_same(const U, T))
  SAFECF_INLINE constexpr View(View<U> other) : data(other.data), size(other.size) {}

  SAFECF_INLINE explicit operator bool() const { return data != nullptr; }
  SAFECF_INLINE T& operator[](int64_t i) const {
    SAFECF_ASSERT(0 <= i && i < size);
    return data[i];
  }
  // The values [first, first + count).
  SAFECF_INLINE View slice(int64_t first, int64_t count) const {
    SAFECF_ASSERT(0 <= first && 0 <= count && first + count <= size);
    return {data + first, count};
  }
  SAFECF_INLINE View from(int64_t first) const { return slice(first, size - first); }
  SAFECF_INLINE T* begin() const { return data; }
  SAFECF_INLINE T* end() const { return data + size; }
};

// A dense matrix by rows; row i starts at data + i * stride.
template <class T>
struct MatrixView {
  T* data;
  int64_t rows, columns, stride;

  SAFECF_INLINE constexpr MatrixView() : data(nullptr), rows(0), columns(0), stride(0) {}
  SAFECF_INLINE constexpr MatrixView(T* data, int64_t rows, int64_t columns)
      : MatrixView(data, rows, columns, columns) {}
  SAFECF_INLINE constexpr MatrixView(T* data, int64_t rows, int64_t columns, int64_t stride)
      : data(data), rows(rows), columns(columns), stride(stride) {}
  template <class U>
    requires(__is_same(const U, T))
  SAFECF_INLINE constexpr MatrixView(MatrixView<U> other)
      : MatrixView(other.data, other.rows, other.columns, other.stride) {}

  SAFECF_INLINE explicit operator bool() const { return data != nullptr; }
  SAFECF_INLINE T& operator()(int64_t i, int64_t j) const { return row(i)[j]; }
  SAFECF_INLINE View<T> row(int64_t i) const {
    SAFECF_ASSERT(0 <= i && i < rows);
    return {data + i * stride, columns};
  }
  // `count` rows or columns from `first` on.
  SAFECF_INLINE MatrixView rows_from(int64_t first, int64_t count) const {
    SAFECF_ASSERT(0 <= first && 0 <= count && first + count <= rows);
    return {data + first * stride, count, columns, stride};
  }
  SAFECF_INLINE MatrixView columns_from(int64_t first, int64_t count) const {
    SAFECF_ASSERT(0 <= first && 0 <= count && first + count <= columns);
    return {rows == 0 ? data : data + first, rows, count, stride};
  }
};

// A matrix with any strides: element (i, j) is data[i * row_stride + j * column_stride].
struct Operand {
  const float* data;
  int64_t rows, columns, row_stride, column_stride;

  SAFECF_INLINE Operand(const float* data, int64_t rows, int64_t columns, int64_t row_stride,
                        int64_t column_stride)
      : data(data),
        rows(rows),
        columns(columns),
        row_stride(row_stride),
        column_stride(column_stride) {}
  template <class T>
  SAFECF_INLINE Operand(MatrixView<T> m) : Operand(m.data, m.rows, m.columns, m.stride, 1) {}

  SAFECF_INLINE Operand transposed() const {
    return {data, columns, rows, column_stride, row_stride};
  }
  SAFECF_INLINE const float* at(int64_t i, int64_t j) const {
    SAFECF_ASSERT(0 <= i && i < rows && 0 <= j && j < columns);
    return data + i * row_stride + j * column_stride;
  }
  // `count` rows or columns from `first` on.
  SAFECF_INLINE Operand rows_from(int64_t first, int64_t count) const {
    SAFECF_ASSERT(0 <= first && 0 <= count && first + count <= rows);
    return {data + first * row_stride, count, columns, row_stride, column_stride};
  }
  SAFECF_INLINE Operand columns_from(int64_t first, int64_t count) const {
    SAFECF_ASSERT(0 <= first && 0 <= count && first + count <= columns);
    return {data + first * column_stride, rows, count, row_stride, column_stride};
  }
};

}  // namespace safecf
