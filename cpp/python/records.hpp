// The records of Python: they hold their arrays and are checked when they are made.
#pragma once

#include <string>

#include "arrays.hpp"

namespace safecf::python {

// A sparse matrix by rows.
struct PyMatrix {
  In1<int64_t> indptr;
  In1<int32_t> indices;
  std::optional<In1<float>> weights;

  PyMatrix(In1<int64_t> indptr, In1<int32_t> indices, std::optional<In1<float>> weights);
  Csr csr() const { return {view(indptr), view(indices), view(weights)}; }
};

// The fixed side of a half-step.
struct PyFixed {
  // float32, or uint32 with two bfloat16 numbers per word
  using Rotated = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  Rotated rotated;
  In1<float> values;
  std::optional<In2<float>> basis;

  PyFixed(Rotated rotated, In1<float> values, std::optional<In2<float>> basis);
  Fixed fixed() const;

 private:
  bool is_words() const { return rotated.dtype() == nb::dtype<uint32_t>(); }
};

// The systems of a half-step.
struct PyRows {
  PyMatrix matrix;
  In1<float> row_weight, col_weight, gram_weight, ridge;

  PyRows(PyMatrix matrix, In1<float> row_weight, In1<float> col_weight, In1<float> gram_weight,
         In1<float> ridge);
  Rows rows() const;
};

// Room for what a solver reports of each row.
struct PyReport {
  Out1<float> change, norm;

  PyReport(Out1<float> change, Out1<float> norm);
  Report report() const { return {out_view(change), out_view(norm)}; }
};

}  // namespace safecf::python
