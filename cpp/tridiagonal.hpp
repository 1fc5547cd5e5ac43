// Symmetric matrices and tridiagonal ones.
#pragma once

#include <vector>

#include "core.hpp"
#include "memory.hpp"

namespace safecf {

// A = Q T Q', T tridiagonal, Q = H_(n-1) ... H_1, H_k = I - tau_k v_k v_k', by rows from the last
// one on; v_k has k numbers, the last one is 1. Elements are at most 1 in size.
class Reduction {
 public:
  // The rows of A are overwritten with the v_k.
  Reduction(MatrixView<double> a, const Execution& execution);

  // Column j of the basis = Q z, z being row order[j].
  void rotate_back(MatrixView<const double> rows, const std::vector<int64_t>& order,
                   MatrixView<double> basis, const Execution& execution) const;

  Buffer<double> diagonal, off_diagonal;

 private:
  class Panel;
  class Blocks;
  void update(int64_t base, int64_t first, MatrixView<const double> w, const Execution& execution);

  MatrixView<double> a_;
  Buffer<double> tau_;
};

// Overwrites the diagonal of T with its eigenvalues, `rows` with its eigenvectors, and `room`,
// which is as large; returns the rows in the order of ascending eigenvalues.
std::vector<int64_t> tridiagonal_eigen(View<double> diagonal, View<const double> off_diagonal,
                                       MatrixView<double> rows, MatrixView<double> room,
                                       const Execution& execution);

}  // namespace safecf
