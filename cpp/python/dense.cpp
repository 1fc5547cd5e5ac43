// Bindings of whole factor matrices and of sparse matrices.
#include "records.hpp"

using namespace nb::literals;

namespace safecf::python {
namespace {

void gram(const In2<float>& factors, const std::optional<In1<float>>& weight,
          const Out2<float>& gram, const Execution& execution, bool rough) {
  without_gil([&] { safecf::gram(view(factors), view(weight), out_view(gram), execution, rough); });
}

void gram_block(const In2<float>& factors, const std::optional<In1<float>>& weight, int64_t first,
                const Out2<float>& gram, const Execution& execution) {
  without_gil(
      [&] { safecf::gram_block(view(factors), view(weight), first, out_view(gram), execution); });
}

void rotate(const In2<float>& factors, int64_t first, const In2<float>& basis,
            const Out2<float>& rotated, const Execution& execution, bool rough) {
  without_gil([&] {
    safecf::rotate(view(factors), first, view(basis), out_view(rotated), execution, rough);
  });
}

void eigen(const In2<double>& gram, const Out1<double>& values, const Out2<double>& basis,
           const Execution& execution) {
  without_gil([&] { safecf::eigen(view(gram), out_view(values), out_view(basis), execution); });
}

void to_bfloat16(const In2<float>& factors, const Out2<uint32_t>& words,
                 const Execution& execution) {
  without_gil([&] { safecf::to_bfloat16(view(factors), out_view(words), execution); });
}

void transpose(const PyMatrix& matrix, const Out1<int64_t>& indptr, const Out1<int32_t>& indices,
               const std::optional<Out1<float>>& weights) {
  without_gil([&] {
    safecf::transpose(matrix.csr(), {out_view(indptr), out_view(indices),
                                     weights ? out_view(*weights) : View<float>()});
  });
}

void positions(const PyMatrix& matrix, int64_t num_columns, const Out1<uint32_t>& positions) {
  without_gil([&] { safecf::positions(matrix.csr(), num_columns, out_view(positions)); });
}

}  // namespace

void bind_dense(nb::module_& m) {
  m.def("gram", gram, "factors"_a, "weight"_a.none(), "gram"_a.noconvert(), "execution"_a,
        "rough"_a = false, "Write F' diag(weight) F; rough products are good to 2^-16.");
  m.def("gram_block", gram_block, "factors"_a, "weight"_a.none(), "first"_a, "gram"_a.noconvert(),
        "execution"_a, "Write the columns of F' diag(weight) F from `first` on.");
  m.def("rotate", rotate, "factors"_a, "first"_a, "basis"_a, "rotated"_a.noconvert(), "execution"_a,
        "rough"_a = false,
        "Write F_block basis, F_block being columns of F from `first` on, rows padded with zeros; "
        "`rotated` may be F itself. Rough products are good to 2^-16.");
  m.def(
      "eigen", eigen, "gram"_a, "values"_a.noconvert(), "basis"_a.noconvert(), "execution"_a,
      "Write the eigenvalues of the symmetric gram, ascending, and its eigenvectors in\ncolumns.");
  m.def("to_bfloat16", to_bfloat16, "factors"_a, "words"_a.noconvert(), "execution"_a,
        "Write the factors as bfloat16, two numbers per word, rows padded with zeros.");
  m.def("transpose", transpose, "matrix"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "weights"_a.noconvert().none(), "Write the transposed matrix, entries in ascending order.");
  m.def("positions", positions, "matrix"_a, "num_columns"_a, "positions"_a.noconvert(),
        "Write where the entries of the transposed matrix stand in the matrix.");
}

}  // namespace safecf::python
