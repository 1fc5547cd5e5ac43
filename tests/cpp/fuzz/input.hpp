// The fuzzer's bytes as sizes, parameters and arrays, mostly fit and now and then hostile.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "../check.hpp"
#include "checks.hpp"
#include "scribbler.hpp"

namespace safecf::fuzz {

// A dense matrix in memory of its own.
template <class T>
struct Dense {
  int64_t rows, columns;
  std::vector<T> values;

  MatrixView<const T> in() const { return {values.data(), rows, columns}; }
  MatrixView<T> out() { return {values.data(), rows, columns}; }
};

// A sparse matrix that has passed the checks of Python's `Matrix`, or not.
struct Sparse {
  std::vector<int64_t> offsets;
  std::vector<int32_t> columns;
  std::vector<float> weights;
  bool weighted;

  int64_t rows() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t entries() const { return static_cast<int64_t>(columns.size()); }
  Csr csr() const {
    return {safecf::in(offsets), safecf::in(columns),
            weighted ? safecf::in(weights) : View<const float>()};
  }
};

class Input {
 public:
  static constexpr int kHostile = 232;  // bytes from here on ask for something hostile

  Input(const uint8_t* data, size_t size) : next_(data), end_(data + size) {}

  // The next byte; behind the last one, harmless numbers that look random.
  uint8_t byte() {
    if (next_ != end_) return *next_++;
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<uint8_t>((state_ >> 24) % kHostile);
  }

  // 0 to most
  int64_t size(int64_t most) { return byte() % (most + 1); }

  // The same, and now and then far more: beyond the tiles of products.
  int64_t width(int64_t most) { return byte() % 32 ? size(most) : 8 * size(most); }

  // One in four bytes above kHostile makes it a little longer or shorter.
  int64_t about(int64_t size) {
    const uint8_t code = byte();
    if (code < kHostile) return size;
    return code % 4 ? size : std::max<int64_t>(0, size + (code % 8 ? 1 : -1));
  }

  float number() {
    constexpr float kSpecial[] = {NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, FLT_MIN, 1e-42f, 0};
    const uint8_t code = byte();
    if (code >= kHostile) return kSpecial[code % 8];
    return static_cast<float>(code - 100) / 64.0f;
  }

  // An index below `limit`, or one that is not.
  template <class T>
  T index(int64_t limit) {
    const uint8_t code = byte();
    const T hostile[] = {std::numeric_limits<T>::max(), std::numeric_limits<T>::min(),
                         static_cast<T>(-1), static_cast<T>(limit)};
    if (code >= kHostile || limit <= 0) return hostile[code % 4];
    return static_cast<T>((code + 251 * static_cast<int64_t>(byte())) % limit);
  }

  std::vector<float> numbers(int64_t count) {
    std::vector<float> found(static_cast<size_t>(about(count)));
    for (float& x : found) x = number();
    return found;
  }
  std::vector<double> doubles(int64_t count) {
    std::vector<double> found;
    for (const float x : numbers(count)) found.push_back(x);
    return found;
  }
  Dense<float> dense(int64_t rows, int64_t columns) {
    Dense<float> found{about(rows), about(columns), {}};
    found.values.resize(static_cast<size_t>(found.rows * found.columns));
    for (float& x : found.values) x = number();
    return found;
  }

  // Rows with columns below `limit`, ascending if asked.
  Sparse sparse(int64_t rows, int64_t limit, bool ascending = false) {
    Sparse found;
    found.offsets.push_back(0);
    for (int64_t row = about(rows); row > 0; --row) {
      const uint8_t code = byte();
      const int64_t length = code < 4 ? 60 + code * 2 : code % 9;
      found.offsets.push_back(found.offsets.back() + length);
    }
    const int64_t entries = found.offsets.back();
    for (int64_t e = 0; e < entries; ++e) found.columns.push_back(index<int32_t>(limit));
    if (ascending && byte() < kHostile)
      for (size_t row = 1; row < found.offsets.size(); ++row)
        std::sort(found.columns.begin() + found.offsets[row - 1],
                  found.columns.begin() + found.offsets[row]);
    found.weighted = byte() % 2;
    if (found.weighted) found.weights = numbers(entries);
    while (byte() >= kHostile)
      found.offsets[static_cast<size_t>(size(found.rows()))] = index<int64_t>(entries + 1);
    if (byte() < kHostile) {
      check(found.csr());
      check_offsets(found.csr());
    }
    return found;
  }

  Execution execution() {
    const auto all = available_kernels();
    const Kernels* const kernels = all[static_cast<size_t>(byte()) % all.size()];
    return {kernels, byte() % 64 == 0 ? 3 : 1};
  }

 private:
  const uint8_t* next_;
  const uint8_t* end_;
  uint32_t state_ = 1;
};

// Fails where a result breaks its promise.
inline void promise(bool kept) {
  if (!kept) __builtin_trap();
}

}  // namespace safecf::fuzz
