// What the tests share: a check that always counts, and views of vectors.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

template <class T>
View<const T> in(const std::vector<T>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}
template <class T>
View<T> out(std::vector<T>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

}  // namespace safecf
