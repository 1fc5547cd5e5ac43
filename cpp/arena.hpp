// Scratch memory of one task: spans taken one after the other, each on a cache line.
#pragma once

#include "view.hpp"

namespace safecf {

constexpr int64_t kCacheLine = 64;  // bytes

// Bytes that `count` values take in an arena.
template <class T>
SAFECF_INLINE constexpr int64_t scratch(int64_t count) {
  return (count * static_cast<int64_t>(sizeof(T)) + kCacheLine - 1) / kCacheLine * kCacheLine;
}

// A position in the scratch memory of a thread. Passed by value it lends the rest: what the callee
// takes is free again when it returns. A loop declares the bytes that its tasks take in all; debug
// builds check that none takes more. The memory is not initialised.
class Arena {
 public:
  SAFECF_INLINE Arena(char* begin, char* end) : next_(begin), end_(end) {}

  template <class T>
  SAFECF_INLINE View<T> take(int64_t count) {
    char* const begin = next_;
    next_ += scratch<T>(count);
    SAFECF_ASSERT(next_ <= end_);
    return {reinterpret_cast<T*>(begin), count};
  }
  template <class T>
  SAFECF_INLINE MatrixView<T> take(int64_t rows, int64_t columns) {
    return {take<T>(rows * columns).data, rows, columns};
  }

 private:
  char* next_;
  char* end_;
};

}  // namespace safecf
