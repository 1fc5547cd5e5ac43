// Python's arrays as the core's views.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>

#include "core.hpp"

namespace nb = nanobind;

namespace safecf::python {

// Inputs may be converted; outputs are bound with noconvert(), so that none is written into a copy.
template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
View<const T> view(const In1<T>& array) {
  return {array.data(), static_cast<int64_t>(array.size())};
}
template <class T>
View<const T> view(const std::optional<In1<T>>& array) {
  return array ? view(*array) : View<const T>();
}
template <class T>
View<T> out_view(const Out1<T>& array) {
  return {array.data(), static_cast<int64_t>(array.size())};
}
template <class T>
MatrixView<const T> view(const In2<T>& array) {
  return {array.data(), static_cast<int64_t>(array.shape(0)), static_cast<int64_t>(array.shape(1))};
}
template <class T>
MatrixView<T> out_view(const Out2<T>& array) {
  return {array.data(), static_cast<int64_t>(array.shape(0)), static_cast<int64_t>(array.shape(1))};
}

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// Runs `function` without the GIL; an interrupt comes back as the Python error that is set already.
template <class Function>
auto without_gil(const Function& function) {
  try {
    const nb::gil_scoped_release release;
    return function();
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
}

void bind_records(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_dense(nb::module_& m);
void bind_search(nb::module_& m);
void bind_quantile(nb::module_& m);

}  // namespace safecf::python
