// Eigenvalues and eigenvectors of a symmetric matrix: reduced to a tridiagonal one, whose
// eigenvectors are rotated back.
#include <algorithm>
#include <cmath>
#include <vector>

#include "checks.hpp"
#include "tridiagonal.hpp"

namespace safecf {

void eigen(MatrixView<const double> gram, View<double> values, MatrixView<double> basis,
           const Execution& execution) {
  const int64_t n = gram.rows;
  check_factors(n);
  require(gram.columns == n, "gram is not square");
  require(values.size == n, "one value per factor is needed");
  require(basis.rows == n && basis.columns == n, "basis is not factors x factors");
  check_apart({values, basis}, {gram});
  const int64_t stride = n + 8;  // rows a power of two apart would share their places in a cache
  Buffer<double> memory(static_cast<size_t>(n * stride));
  const MatrixView<double> a(memory.data(), n, n, stride);
  constexpr int64_t kRows = 64;  // per task
  const int64_t tasks = (n + kRows - 1) / kRows;
  std::vector<double> largest(static_cast<size_t>(tasks));
  const auto for_elements = [&](const auto& body) {
    parallel_for(tasks, execution, [&](int64_t task) {
      for (int64_t i = task * kRows; i < std::min(n, (task + 1) * kRows); ++i)
        for (int64_t j = 0; j <= i; ++j) body(task, i, j);
    });
  };
  for_elements([&](int64_t task, int64_t i, int64_t j) {
    a(i, j) = gram(i, j);
    require(std::isfinite(a(i, j)), "gram is not finite");
    largest[task] = std::max(largest[task], std::abs(a(i, j)));
  });
  // a power of two, so that nothing is rounded, and squares neither overflow nor vanish
  int exponent = 0;
  std::frexp(*std::max_element(largest.begin(), largest.end()), &exponent);
  exponent = std::clamp(exponent, -1000, 1000);
  const double scale = std::ldexp(1.0, -exponent);
  for_elements([&](int64_t, int64_t i, int64_t j) { a(i, j) *= scale; });
  Reduction reduced(a, execution);
  Buffer<double> vectors(static_cast<size_t>(n * n));
  const MatrixView<double> rows(vectors.data(), n, n);
  const std::vector<int64_t> order = tridiagonal_eigen(
      {reduced.diagonal.data(), n}, {reduced.off_diagonal.data(), n}, rows, basis, execution);
  reduced.rotate_back(rows, order, basis, execution);
  for (int64_t j = 0; j < n; ++j) values[j] = std::ldexp(reduced.diagonal[order[j]], exponent);
}

}  // namespace safecf
