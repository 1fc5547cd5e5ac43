// Bindings of half-steps, gradients, losses and block updates.
#include <nanobind/stl/string.h>

#include <string>

#include "dispatch.hpp"
#include "records.hpp"

using namespace nb::literals;

namespace safecf::python {
namespace {

// The systems and their fixed side fit each other and the factors.
void check(const Rows& rows, const Fixed& fixed, MatrixView<const float> factors) {
  const int64_t others =
      fixed.rotated.bfloat16 ? fixed.rotated.bfloat16.rows : fixed.rotated.float32.rows;
  require(rows.col_weight.size == others, "one column weight per fixed row is needed");
  require(factors.rows == rows.matrix.rows(), "one row of factors per row of the matrix is needed");
  require(factors.columns == fixed.factors(), "factors differ from the fixed side's");
}

int64_t solve_rows(const PyRows& rows, const PyFixed& fixed, const Out2<float>& factors,
                   const PyReport& report, const std::string& name, int max_iterations,
                   float tolerance, const Execution& execution) {
  const RowSolver& solver = row_solver_named(*execution.kernels, name);
  const Rows systems = rows.rows();
  const Fixed side =
      solver.takes_bfloat16 ? fixed.fixed() : fixed.float32("this solver needs rotated in float32");
  check(systems, side, out_view(factors));
  const Report out = report.report(systems.matrix.rows());
  return without_gil([&] {
    return safecf::solve_rows(systems, side, solver, {max_iterations, tolerance}, out_view(factors),
                              out, execution);
  });
}

void gradients(const PyRows& rows, const PyFixed& fixed, const In2<float>& factors,
               const Out2<float>& gradients, const Execution& execution) {
  const Rows systems = rows.rows();
  const Fixed side = fixed.float32("gradients need rotated in float32");
  check(systems, side, view(factors));
  check(systems, side, out_view(gradients));
  without_gil(
      [&] { safecf::gradients(systems, side, view(factors), out_view(gradients), execution); });
}

void losses(const PyMatrix& matrix, const In1<float>& pair_weight,
            const std::optional<In1<float>>& ridge, const PyFixed& fixed, const In2<float>& factors,
            const Out1<float>& losses, const Execution& execution) {
  const Csr csr = matrix.csr();
  const Fixed side = fixed.fixed();
  const auto count = static_cast<size_t>(csr.rows());
  require(pair_weight.size() == count && losses.size() == count && factors.shape(0) == count &&
              (!ridge || ridge->size() == count) &&
              static_cast<int64_t>(factors.shape(1)) == side.factors(),
          "one weight, loss and row of factors per row of the matrix is needed");
  without_gil([&] {
    safecf::losses(csr, view(pair_weight), view(ridge), side, view(factors), out_view(losses),
                   execution);
  });
}

int64_t update_block(const PyRows& rows, const PyFixed& fixed, const In2<float>& gram,
                     int64_t first, const Out2<float>& factors, const PyReport& report,
                     const Out1<float>& scores, const std::optional<In1<uint32_t>>& positions,
                     const Execution& execution) {
  const Rows systems = rows.rows();
  const FixedBlock block{fixed.float32("the subspace solver needs rotated in float32"), view(gram),
                         first};
  const int64_t size = block.side.factors();
  const size_t entries = rows.matrix.indices.size();
  require(static_cast<bool>(block.side.basis), "the subspace solver needs a basis");
  require(0 <= first && first + size <= out_view(factors).columns,
          "the block is not among the factors");
  check(systems, block.side, out_view(factors).columns_from(first, size));
  require(gram.shape(0) == factors.shape(1) && block.gram.columns == size,
          "gram is not factors x block");
  require(scores.size() == entries && (!positions || positions->size() == entries),
          "one score and one position per entry are needed");
  const Report out = report.report(systems.matrix.rows());
  return without_gil([&] {
    return safecf::update_block(systems, block, out_view(factors), out,
                                {out_view(scores), view(positions)}, execution);
  });
}

void scores(const PyMatrix& matrix, const In2<float>& factors, const In2<float>& others,
            const Out1<float>& scores, const Execution& execution) {
  const Csr csr = matrix.csr();
  const auto width = static_cast<int64_t>(factors.shape(1));
  require(view(factors).rows == csr.rows() && scores.size() == matrix.indices.size(),
          "one row of factors per row and one score per entry of the matrix are needed");
  require(others.shape(1) == factors.shape(1) && width == padded_width(width),
          "rows are not padded");
  without_gil(
      [&] { safecf::scores(csr, view(factors), view(others), out_view(scores), execution); });
}

void scored_losses(const PyMatrix& matrix, const In1<float>& pair_weight,
                   const std::optional<In1<float>>& ridge, const In1<float>& scores,
                   const In2<float>& factors, const In2<float>& gram, const Out1<float>& losses,
                   const Execution& execution) {
  const Csr csr = matrix.csr();
  const auto count = static_cast<size_t>(csr.rows());
  require(pair_weight.size() == count && losses.size() == count && factors.shape(0) == count &&
              (!ridge || ridge->size() == count) && scores.size() == matrix.indices.size(),
          "one weight, loss and row of factors per row of the matrix is needed");
  require(gram.shape(1) == gram.shape(0) && view(factors).columns == padded_width(view(gram).rows),
          "rows are not padded");
  without_gil([&] {
    safecf::scored_losses(csr, view(pair_weight), view(ridge), view(scores), view(factors),
                          view(gram), out_view(losses), execution);
  });
}

}  // namespace

void bind_rows(nb::module_& m) {
  m.def("solve_rows", solve_rows, "rows"_a, "fixed"_a, "factors"_a.noconvert(), "report"_a,
        "solver"_a, "max_iterations"_a, "tolerance"_a, "execution"_a,
        "Solve all rows by the solver of this name; the first row that failed, or -1.");
  m.def("gradients", gradients, "rows"_a, "fixed"_a, "factors"_a, "gradients"_a.noconvert(),
        "execution"_a, "Write the gradient of every row's objective.");
  m.def("losses", losses, "matrix"_a, "pair_weight"_a, "ridge"_a.none(), "fixed"_a, "factors"_a,
        "losses"_a.noconvert(), "execution"_a,
        "Write the loss of every row, with the ridge if there is one.");
  m.def("update_block", update_block, "rows"_a, "fixed"_a, "gram"_a, "first"_a,
        "factors"_a.noconvert(), "report"_a, "scores"_a.noconvert(), "positions"_a.none(),
        "execution"_a,
        "Solve a block of coordinates of all rows; the first row that failed, or -1.");
  m.def("scores", scores, "matrix"_a, "factors"_a, "others"_a, "scores"_a.noconvert(),
        "execution"_a, "Write the score of every entry of the matrix.");
  m.def("scored_losses", scored_losses, "matrix"_a, "pair_weight"_a, "ridge"_a.none(), "scores"_a,
        "factors"_a, "gram"_a, "losses"_a.noconvert(), "execution"_a,
        "Write the loss of every row, given the scores of the matrix's entries.");
}

}  // namespace safecf::python
