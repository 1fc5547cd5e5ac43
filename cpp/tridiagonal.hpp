// Symmetric matrices and tridiagonal ones.
#pragma once

#include "core.hpp"
#include "memory.hpp"

namespace safecf {

// A = Q T Q', T tridiagonal, Q = H_(n-1) ... H_1, H_k = I - tau_k v_k v_k', by rows from the last
// one on; v_k has k numbers, the last one is 1. Elements are at most 1 in size.
class Reduction {
 public:
  // The rows of A are overwritten with the v_k.
  Reduction(MatrixView<double> a, const Execution& execution);

  // z' := (Q z)' for every row z'.
  void apply(MatrixView<double> rows, const Execution& execution) const;

  Buffer<double> diagonal, off_diagonal;

 private:
  class Panel;
  void update(int64_t base, int64_t first, MatrixView<const double> w, const Execution& execution);

  MatrixView<double> a_;
  Buffer<double> tau_;
};

// T = V' diag(values) V, values ascending, the rows of V being the eigenvectors.
void tridiagonal_eigen(View<double> diagonal, View<double> off_diagonal, View<double> values,
                       MatrixView<double> vectors, const Execution& execution);

}  // namespace safecf
