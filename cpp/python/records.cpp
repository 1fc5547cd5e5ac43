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
  check(csr());
  check_offsets(csr());
}

PyFixed::PyFixed(Rotated rotated_, In1<float> values_, std::optional<In2<float>> basis_)
    : rotated(std::move(rotated_)), values(std::move(values_)), basis(std::move(basis_)) {
  if (!is_words() && rotated.dtype() != nb::dtype<float>())
    throw nb::type_error("rotated is neither float32 nor uint32");
  check(fixed());
}

Fixed PyFixed::fixed() const {
  Fixed found;
  found.values = view(values);
  if (basis) found.basis = view(*basis);
  if (is_words())
    found.rotated.bfloat16 = matrix_view<const uint32_t>(rotated);
  else
    found.rotated.float32 = matrix_view<const float>(rotated);
  return found;
}

PyRows::PyRows(PyMatrix matrix_, In1<float> row_weight_, In1<float> col_weight_,
               In1<float> gram_weight_, In1<float> ridge_)
    : matrix(std::move(matrix_)),
      row_weight(std::move(row_weight_)),
      col_weight(std::move(col_weight_)),
      gram_weight(std::move(gram_weight_)),
      ridge(std::move(ridge_)) {
  check(rows());
}

Rows PyRows::rows() const {
  return {matrix.csr(), view(row_weight), view(col_weight), view(gram_weight), view(ridge)};
}

PyReport::PyReport(Out1<float> change_, Out1<float> norm_)
    : change(std::move(change_)), norm(std::move(norm_)) {
  check(report());
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
            require(threads >= 0, "the number of threads is negative");
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
