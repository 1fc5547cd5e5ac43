// Bindings of the search.
#include "catalogue.hpp"
#include "records.hpp"

using namespace nb::literals;

namespace safecf::python {
namespace {

class PyCatalogue {
 public:
  PyCatalogue(In2<float> factors, const Execution& execution)
      : factors_(std::move(factors)), catalogue_(view(factors_), *execution.kernels) {}

  void search(const In2<float>& queries, const PyMatrix* exclude,
              const std::optional<In1<int32_t>>& exclude_all, const Out2<int32_t>& ids,
              const Out2<float>& scores, const Execution& execution) {
    const Csr own = exclude ? exclude->csr() : Csr();
    const Excluded excluded{exclude ? &own : nullptr, view(exclude_all)};
    without_gil([&] {
      catalogue_.search(view(queries), excluded, {out_view(ids), out_view(scores)}, execution);
    });
  }

  void ranks(const In2<float>& queries, const PyMatrix& targets, const PyMatrix* exclude,
             const std::optional<In1<int32_t>>& exclude_all, const Out1<int32_t>& ranks,
             const Execution& execution) {
    const Csr own = exclude ? exclude->csr() : Csr();
    const Excluded excluded{exclude ? &own : nullptr, view(exclude_all)};
    without_gil([&] {
      catalogue_.ranks(view(queries), targets.csr(), excluded, out_view(ranks), execution);
    });
  }

  int64_t bytes() const { return catalogue_.bytes(); }

 private:
  const In2<float> factors_;
  Catalogue catalogue_;
};

}  // namespace

void bind_search(nb::module_& m) {
  nb::class_<PyCatalogue>(
      m, "Catalogue",
      "The rows of `factors` to search, with copies of them that are made when they are needed.")
      .def(nb::init<In2<float>, const Execution&>(), "factors"_a, "execution"_a)
      .def_prop_ro("nbytes", &PyCatalogue::bytes, "Bytes of the copies that were made so far.")
      .def("search", &PyCatalogue::search, "queries"_a, "exclude"_a.none(), "exclude_all"_a.none(),
           "ids"_a.noconvert(), "scores"_a.noconvert(), "execution"_a,
           "Write the best columns of queries @ factors.T per row and their scores.\n\n"
           "`exclude` lists columns to leave out per row, ascending, `exclude_all` for every row. "
           "One query and a batch give the same bits.")
      .def("ranks", &PyCatalogue::ranks, "queries"_a, "targets"_a, "exclude"_a.none(),
           "exclude_all"_a.none(), "ranks"_a.noconvert(), "execution"_a,
           "Write the rank of every entry of `targets`, a row per query: its place, from 1 on, in "
           "a search of all columns, or 0 if no search finds it.");
}

}  // namespace safecf::python
