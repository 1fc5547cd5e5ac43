// Bindings of half-steps, gradients, losses and block updates.
#include <nanobind/stl/string.h>

#include <string>

#include "dispatch.hpp"
#include "records.hpp"

using namespace nb::literals;

namespace safecf::python {
namespace {

int64_t solve_rows(const PyRows& rows, const PyFixed& fixed, const Out2<float>& factors,
                   const PyReport& report, const std::string& name, int max_iterations,
                   float tolerance, const Execution& execution) {
  const RowSolver& solver = row_solver_named(*execution.kernels, name);
  return without_gil([&] {
    return safecf::solve_rows(rows.rows(), fixed.fixed(), solver, {max_iterations, tolerance},
                              out_view(factors), report.report(), execution);
  });
}

void gradients(const PyRows& rows, const PyFixed& fixed, const In2<float>& factors,
               const Out2<float>& gradients, const Execution& execution) {
  without_gil([&] {
    safecf::gradients(rows.rows(), fixed.fixed(), view(factors), out_view(gradients), execution);
  });
}

void losses(const PyMatrix& matrix, const In1<float>& pair_weight,
            const std::optional<In1<float>>& ridge, const PyFixed& fixed, const In2<float>& factors,
            const Out1<float>& losses, const Execution& execution) {
  without_gil([&] {
    safecf::losses(matrix.csr(), view(pair_weight), view(ridge), fixed.fixed(), view(factors),
                   out_view(losses), execution);
  });
}

int64_t update_block(const PyRows& rows, const PyFixed& fixed, const In2<float>& gram,
                     int64_t first, const Out2<float>& factors, const PyReport& report,
                     const Out1<float>& scores, const std::optional<In1<uint32_t>>& positions,
                     const Execution& execution) {
  return without_gil([&] {
    return safecf::update_block(rows.rows(), {fixed.fixed(), view(gram), first}, out_view(factors),
                                report.report(), {out_view(scores), view(positions)}, execution);
  });
}

void scores(const PyMatrix& matrix, const In2<float>& factors, const In2<float>& others,
            const Out1<float>& scores, const Execution& execution) {
  without_gil([&] {
    safecf::scores(matrix.csr(), view(factors), view(others), out_view(scores), execution);
  });
}

void scored_losses(const PyMatrix& matrix, const In1<float>& pair_weight,
                   const std::optional<In1<float>>& ridge, const In1<float>& scores,
                   const In2<float>& factors, const In2<float>& gram, const Out1<float>& losses,
                   const Execution& execution) {
  without_gil([&] {
    safecf::scored_losses(matrix.csr(), view(pair_weight), view(ridge), view(scores), view(factors),
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
