// Python's arrays as the core's records, checked; only `bindings.cpp` includes this.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>

#include "core.hpp"

namespace nb = nanobind;

namespace {

using safecf::Execution;

template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// Ctrl-C reaches the main thread only; elsewhere the check finds nothing.
Execution execution(int threads) {
  return {threads, [] {
            const nb::gil_scoped_acquire hold;
            return PyErr_CheckSignals() != 0;
          }};
}

// Runs `verb` without the GIL; an interrupt comes back as the Python error that is already set.
template <class Verb>
auto released(Verb verb) {
  try {
    const nb::gil_scoped_release release;
    return verb();
  } catch (const safecf::Interrupted&) {
    throw nb::python_error();
  }
}

safecf::Csr matrix(const In1<int64_t>& indptr, const In1<int32_t>& indices,
                   const std::optional<In1<float>>& weights) {
  require(indptr.size() >= 1, "indptr is empty");
  require(!weights || weights->size() == indices.size(), "weights and indices differ in length");
  require(indptr(indptr.size() - 1) == static_cast<int64_t>(indices.size()),
          "indptr does not end at the number of indices");
  return {indptr.data(), indices.data(), weights ? weights->data() : nullptr,
          static_cast<int64_t>(indptr.size()) - 1};
}

// Rows in single precision, or rough, in pairs.
using Rotated = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

safecf::Gathered gathered(const Rotated& rotated, int64_t factors) {
  const auto columns = static_cast<int64_t>(rotated.shape(1));
  const bool rough = rotated.dtype() == nb::dtype<uint32_t>();
  require(rough || rotated.dtype() == nb::dtype<float>(), "rotated is neither float32 nor uint32");
  const int64_t width = rough ? safecf::rough_width(factors) : safecf::padded_width(factors);
  require(columns == (rough ? width / 2 : width), "rotated rows are not padded");
  if (rough) return {nullptr, static_cast<const uint32_t*>(rotated.data()), width};
  return {static_cast<const float*>(rotated.data()), nullptr, width};
}

safecf::Fixed fixed(const Rotated& rotated, const In1<float>& values,
                    const std::optional<In2<float>>& basis) {
  const int64_t d = values.size();
  require(!basis || (static_cast<int64_t>(basis->shape(0)) == d &&
                     static_cast<int64_t>(basis->shape(1)) == d),
          "basis is not factors x factors");
  return {gathered(rotated, d), values.data(), basis ? basis->data() : nullptr, d};
}

// The rows of a half-step and the side that they are solved with.
struct Systems {
  safecf::Csr csr;
  safecf::Fixed side;
  safecf::Rows rows;
};

Systems systems_of(const In1<int64_t>& indptr, const In1<int32_t>& indices,
                   const std::optional<In1<float>>& weights, const In1<float>& row_weight,
                   const In1<float>& col_weight, const In1<float>& gram_weight,
                   const In1<float>& ridge, const Rotated& rotated, const In1<float>& values,
                   const std::optional<In2<float>>& basis) {
  const auto csr = matrix(indptr, indices, weights);
  const auto n = static_cast<size_t>(csr.rows);
  require(row_weight.size() == n && gram_weight.size() == n && ridge.size() == n,
          "one weight and one ridge per row are needed");
  require(col_weight.size() == rotated.shape(0), "one column weight per fixed row is needed");
  return {csr,
          fixed(rotated, values, basis),
          {csr, row_weight.data(), col_weight.data(), gram_weight.data(), ridge.data()}};
}

safecf::Solution solution(const Out2<float>& factors, const Out1<float>& change,
                          const Out1<float>& norm, const safecf::Csr& matrix,
                          const safecf::Fixed& fixed) {
  const auto n = static_cast<size_t>(matrix.rows);
  require(factors.shape(0) == n && change.size() == n && norm.size() == n,
          "one row of factors per row of the matrix is needed");
  require(static_cast<int64_t>(factors.shape(1)) == fixed.factors,
          "factors differ from the fixed side's");
  return {factors.data(), change.data(), norm.data()};
}

}  // namespace
