// Python's arrays as the core's views.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>

#include "checks.hpp"
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

// The array's data, which NumPy does not always align.
template <class T, class Array>
T* aligned(const Array& array) {
  T* const data = static_cast<T*>(array.data());
  require(reinterpret_cast<uintptr_t>(data) % alignof(T) == 0,
          "an array is not aligned to its numbers; pass a copy of it");
  return data;
}

template <class T>
View<const T> view(const In1<T>& array) {
  return {aligned<const T>(array), static_cast<int64_t>(array.size())};
}
template <class T>
View<const T> view(const std::optional<In1<T>>& array) {
  return array ? view(*array) : View<const T>();
}
template <class T>
View<T> out_view(const Out1<T>& array) {
  return {aligned<T>(array), static_cast<int64_t>(array.size())};
}
template <class T, class Array>
MatrixView<T> matrix_view(const Array& array) {
  return {aligned<T>(array), static_cast<int64_t>(array.shape(0)),
          static_cast<int64_t>(array.shape(1))};
}
template <class T>
MatrixView<const T> view(const In2<T>& array) {
  return matrix_view<const T>(array);
}
template <class T>
MatrixView<T> out_view(const Out2<T>& array) {
  return matrix_view<T>(array);
}

// Gives up the GIL while it lives. Python before 3.14 ends a daemon thread that wants the GIL back
// while the interpreter finalises by unwinding its stack, which may not pass through C++; such a
// thread sleeps until the process ends, as it does since 3.14.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  ~WithoutGil();

 private:
  PyThreadState* const state_;
};

// Runs `function` without the GIL; an interrupt comes back as the Python error that is set already.
template <class Function>
auto without_gil(const Function& function) {
  try {
    const WithoutGil released;
    return function();
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
}

// Whether Ctrl-C was pressed; asked in other threads than the main one it finds nothing.
bool interrupted();

void bind_records(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_dense(nb::module_& m);
void bind_search(nb::module_& m);
void bind_quantile(nb::module_& m);

}  // namespace safecf::python
