#include "records.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "dispatch.hpp"

using namespace nb::literals;

namespace safecf::python {

PyMatrix::PyMatrix(In1<int64_t> indptr_, In1<int32_t> indices_, std::optional<In1<float>> weights_)
    : indptr(std::move(indptr_)), indices(std::move(indices_)), weights(std::move(weights_)) {
  const View<const int64_t> offsets = view(indptr);
  require(offsets.size >= 1, "indptr is empty");
  require(!weights || weights->size() == indices.size(), "weights and indices differ in length");
  require(offsets[0] == 0, "indptr does not start at 0");
  for (int64_t row = 1; row < offsets.size; ++row)
    require(offsets[row - 1] <= offsets[row], "indptr decreases");
  require(offsets[offsets.size - 1] == static_cast<int64_t>(indices.size()),
          "indptr does not end at the number of indices");
}

PyFixed::PyFixed(Rotated rotated_, In1<float> values_, std::optional<In2<float>> basis_)
    : rotated(std::move(rotated_)), values(std::move(values_)), basis(std::move(basis_)) {
  const auto d = static_cast<int64_t>(values.size());
  const auto columns = static_cast<int64_t>(rotated.shape(1));
  const bool words = rotated.dtype() == nb::dtype<uint32_t>();
  if (!words && rotated.dtype() != nb::dtype<float>())
    throw nb::type_error("rotated is neither float32 nor uint32");
  require(columns == (words ? bfloat16_width(d) / 2 : padded_width(d)),
          "rotated rows are not padded");
  require(!basis || (basis->shape(0) == values.size() && basis->shape(1) == values.size()),
          "basis is not factors x factors");
}

Fixed PyFixed::fixed() const {
  const auto count = static_cast<int64_t>(rotated.shape(0));
  const auto columns = static_cast<int64_t>(rotated.shape(1));
  Fixed found;
  found.values = view(values);
  if (basis) found.basis = view(*basis);
  if (rotated.dtype() == nb::dtype<uint32_t>())
    found.rotated.bfloat16 = {static_cast<const uint32_t*>(rotated.data()), count, columns};
  else
    found.rotated.float32 = {static_cast<const float*>(rotated.data()), count, columns};
  return found;
}

Fixed PyFixed::float32(const char* message) const {
  if (rotated.dtype() != nb::dtype<float>()) throw nb::type_error(message);
  return fixed();
}

PyRows::PyRows(PyMatrix matrix_, In1<float> row_weight_, In1<float> col_weight_,
               In1<float> gram_weight_, In1<float> ridge_)
    : matrix(std::move(matrix_)),
      row_weight(std::move(row_weight_)),
      col_weight(std::move(col_weight_)),
      gram_weight(std::move(gram_weight_)),
      ridge(std::move(ridge_)) {
  const size_t count = matrix.indptr.size() - 1;
  require(row_weight.size() == count && gram_weight.size() == count && ridge.size() == count,
          "one weight and one ridge per row are needed");
}

Rows PyRows::rows() const {
  return {matrix.csr(), view(row_weight), view(col_weight), view(gram_weight), view(ridge)};
}

PyReport::PyReport(Out1<float> change_, Out1<float> norm_)
    : change(std::move(change_)), norm(std::move(norm_)) {
  require(change.size() == norm.size(), "change and norm differ in length");
}

Report PyReport::report(int64_t rows) const {
  require(static_cast<int64_t>(change.size()) == rows, "one change and norm per row are needed");
  return {out_view(change), out_view(norm)};
}

void bind_records(nb::module_& m) {
  m.def(
      "isas",
      [] {
        std::vector<std::string> names;
        for (const Kernels* table : available_kernels()) names.push_back(table->name);
        return names;
      },
      "The instruction sets that this machine runs, best first.");

  nb::class_<Execution>(m, "Execution",
                        "The number of threads, 0 for all cores, and the instruction set.")
      .def(
          "__init__",
          [](Execution* self, int threads, const std::string& isa) {
            // Ctrl-C reaches the main thread only; elsewhere the check finds nothing.
            const auto interrupted = [] {
              const nb::gil_scoped_acquire hold;
              return PyErr_CheckSignals() != 0;
            };
            new (self) Execution{&kernels_named(isa), threads, interrupted};
          },
          "threads"_a = 0, "isa"_a = "auto");

  nb::class_<PyMatrix>(m, "Matrix", "A sparse matrix by rows; weights None stands for ones.")
      .def(nb::init<In1<int64_t>, In1<int32_t>, std::optional<In1<float>>>(), "indptr"_a,
           "indices"_a, "weights"_a.none() = nb::none());

  nb::class_<PyFixed>(
      m, "Fixed",
      "The fixed side in the eigenbasis of G = basis diag(values) basis'.\n\n"
      "Rows of `rotated` are float32, or uint32 with two bfloat16 numbers per word, "
      "and padded. Without a basis, the rows to solve are in it already.")
      .def(nb::init<PyFixed::Rotated, In1<float>, std::optional<In2<float>>>(), "rotated"_a,
           "values"_a, "basis"_a.none() = nb::none());

  nb::class_<PyRows>(m, "Rows",
                     "( gram_weight_r G + sum_j p_rj y_j y_j' + ridge_r I ) x_r = sum_j p_rj y_j.")
      .def(nb::init<PyMatrix, In1<float>, In1<float>, In1<float>, In1<float>>(), "matrix"_a,
           "row_weight"_a, "col_weight"_a, "gram_weight"_a, "ridge"_a);

  nb::class_<PyReport>(m, "Report", "Room for |x_new - x_old|^2 and |x_new|^2 of each row.")
      .def(nb::init<Out1<float>, Out1<float>>(), "change"_a.noconvert(), "norm"_a.noconvert());
}

}  // namespace safecf::python
