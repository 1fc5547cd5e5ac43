// What the tests share: a check that always counts, random numbers, and views of vectors.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "core.hpp"
#include "dispatch.hpp"

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                               \
    }                                                                              \
  } while (false)

namespace safecf {

inline std::vector<float> random_floats(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.5f);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out) x = normal(random);
  return out;
}

template <class T>
View<const T> in(const std::vector<T>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}
template <class T>
View<T> out(std::vector<T>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}
// Rows of this many columns.
template <class T>
MatrixView<const T> in(const std::vector<T>& values, int64_t columns) {
  return {values.data(), static_cast<int64_t>(values.size()) / columns, columns};
}
template <class T>
MatrixView<T> out(std::vector<T>& values, int64_t columns) {
  return {values.data(), static_cast<int64_t>(values.size()) / columns, columns};
}

}  // namespace safecf
