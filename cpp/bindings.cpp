// The one file that knows Python, with its header: arrays in, arrays out, the GIL released in
// between.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "dispatch.hpp"

using namespace nb::literals;

NB_MODULE(_core, m) {
  m.doc() = "The native core: pure functions on arrays.";
  m.attr("few_queries") = safecf::kFewQueries;  // up to which topk uses rough rows

  m.def(
      "isas",
      [] {
        std::vector<std::string> names;
        for (const safecf::Kernels* table : safecf::available_kernels())
          names.push_back(table->name);
        return names;
      },
      "The instruction sets that this machine runs, best first.");

  m.def(
      "solve_cg",
      [](In1<int64_t> indptr, In1<int32_t> indices, std::optional<In1<float>> weights,
         In1<float> row_weight, In1<float> col_weight, In1<float> gram_weight, In1<float> ridge,
         Rotated rotated, In1<float> values, std::optional<In2<float>> basis, Out2<float> factors,
         Out1<float> change, Out1<float> norm, bool precondition, int max_iterations,
         float tolerance, int threads, const std::string& isa) {
        const auto [csr, side, systems] =
            systems_of(indptr, indices, weights, row_weight, col_weight, gram_weight, ridge,
                       rotated, values, basis);
        const auto out = solution(factors, change, norm, csr, side);
        const safecf::CgOptions options{precondition, max_iterations, tolerance};
        const auto run = execution(threads);
        return released([&] {
          return safecf::solve_rows_cg(safecf::kernels_named(isa), run, systems, side, options,
                                       out);
        });
      },
      "indptr"_a, "indices"_a, "weights"_a.none(), "row_weight"_a, "col_weight"_a, "gram_weight"_a,
      "ridge"_a, "rotated"_a, "values"_a, "basis"_a.none(), "factors"_a.noconvert(),
      "change"_a.noconvert(), "norm"_a.noconvert(), "precondition"_a, "max_iterations"_a,
      "tolerance"_a, "threads"_a, "isa"_a,
      "Solve all rows by conjugate gradients; the first row that failed, or -1.");

  m.def(
      "solve_exact",
      [](In1<int64_t> indptr, In1<int32_t> indices, std::optional<In1<float>> weights,
         In1<float> row_weight, In1<float> col_weight, In1<float> gram_weight, In1<float> ridge,
         Rotated rotated, In1<float> values, std::optional<In2<float>> basis, Out2<float> factors,
         Out1<float> change, Out1<float> norm, int threads, const std::string& isa) {
        const auto [csr, side, systems] =
            systems_of(indptr, indices, weights, row_weight, col_weight, gram_weight, ridge,
                       rotated, values, basis);
        const auto out = solution(factors, change, norm, csr, side);
        const auto run = execution(threads);
        require(side.rotated.single, "the exact solver needs rotated in float32");
        return released([&] {
          return safecf::solve_rows_exact(safecf::kernels_named(isa), run, systems, side, out);
        });
      },
      "indptr"_a, "indices"_a, "weights"_a.none(), "row_weight"_a, "col_weight"_a, "gram_weight"_a,
      "ridge"_a, "rotated"_a, "values"_a, "basis"_a.none(), "factors"_a.noconvert(),
      "change"_a.noconvert(), "norm"_a.noconvert(), "threads"_a, "isa"_a,
      "Solve all rows by Cholesky; the first row that failed, or -1.");

  m.def(
      "gradients",
      [](In1<int64_t> indptr, In1<int32_t> indices, std::optional<In1<float>> weights,
         In1<float> row_weight, In1<float> col_weight, In1<float> gram_weight, In1<float> ridge,
         Rotated rotated, In1<float> values, std::optional<In2<float>> basis, In2<float> factors,
         Out2<float> gradients, int threads, const std::string& isa) {
        const auto [csr, side, systems] =
            systems_of(indptr, indices, weights, row_weight, col_weight, gram_weight, ridge,
                       rotated, values, basis);
        const auto n = static_cast<size_t>(csr.rows), d = static_cast<size_t>(side.factors);
        require(factors.shape(0) == n && gradients.shape(0) == n && factors.shape(1) == d &&
                    gradients.shape(1) == d,
                "one row of factors and one gradient per row of the matrix are needed");
        require(side.rotated.single, "gradients need rotated in float32");
        const auto run = execution(threads);
        released([&] {
          safecf::gradients(safecf::kernels_named(isa), run, systems, side, factors.data(),
                            gradients.data());
        });
      },
      "indptr"_a, "indices"_a, "weights"_a.none(), "row_weight"_a, "col_weight"_a, "gram_weight"_a,
      "ridge"_a, "rotated"_a, "values"_a, "basis"_a.none(), "factors"_a, "gradients"_a.noconvert(),
      "threads"_a, "isa"_a, "Write the gradient of every row's objective.");

  m.def(
      "losses",
      [](In1<int64_t> indptr, In1<int32_t> indices, std::optional<In1<float>> weights,
         In1<float> pair_weight, Rotated rotated, In1<float> values,
         std::optional<In2<float>> basis, In2<float> factors, Out1<float> losses, int threads,
         const std::string& isa) {
        const auto csr = matrix(indptr, indices, weights);
        const auto side = fixed(rotated, values, basis);
        const auto n = static_cast<size_t>(csr.rows);
        require(pair_weight.size() == n && losses.size() == n && factors.shape(0) == n &&
                    static_cast<int64_t>(factors.shape(1)) == side.factors,
                "one weight, loss and row of factors per row of the matrix is needed");
        const auto run = execution(threads);
        released([&] {
          safecf::losses(safecf::kernels_named(isa), run, csr, pair_weight.data(), side,
                         factors.data(), losses.data());
        });
      },
      "indptr"_a, "indices"_a, "weights"_a.none(), "pair_weight"_a, "rotated"_a, "values"_a,
      "basis"_a.none(), "factors"_a, "losses"_a.noconvert(), "threads"_a, "isa"_a,
      "Write the loss of every row.");

  m.def(
      "update_block",
      [](In1<int64_t> indptr, In1<int32_t> indices, std::optional<In1<float>> weights,
         In1<float> row_weight, In1<float> col_weight, In1<float> gram_weight, In1<float> ridge,
         Rotated rotated, In1<float> values, In2<float> basis, In2<float> gram, int64_t first,
         Out2<float> factors, Out1<float> change, Out1<float> norm, Out1<float> scores,
         std::optional<In1<uint32_t>> positions, int threads, const std::string& isa) {
        const auto [csr, side, systems] =
            systems_of(indptr, indices, weights, row_weight, col_weight, gram_weight, ridge,
                       rotated, values, basis);
        const auto n = static_cast<size_t>(csr.rows);
        const auto d = static_cast<int64_t>(factors.shape(1));
        require(factors.shape(0) == n && change.size() == n && norm.size() == n,
                "one row of factors per row of the matrix is needed");
        require(side.rotated.single, "the subspace solver needs rotated in float32");
        require(0 <= first && first + side.factors <= d, "the block is not among the factors");
        require(static_cast<int64_t>(gram.shape(0)) == d &&
                    static_cast<int64_t>(gram.shape(1)) == side.factors,
                "gram is not factors x block");
        require(
            scores.size() == indices.size() && (!positions || positions->size() == indices.size()),
            "one score and one position per entry are needed");
        const safecf::Solution out{factors.data(), change.data(), norm.data()};
        const auto run = execution(threads);
        return released([&] {
          return safecf::update_block(safecf::kernels_named(isa), run, systems, {side, gram.data()},
                                      first, d, out, scores.data(),
                                      positions ? positions->data() : nullptr);
        });
      },
      "indptr"_a, "indices"_a, "weights"_a.none(), "row_weight"_a, "col_weight"_a, "gram_weight"_a,
      "ridge"_a, "rotated"_a, "values"_a, "basis"_a, "gram"_a, "first"_a, "factors"_a.noconvert(),
      "change"_a.noconvert(), "norm"_a.noconvert(), "scores"_a.noconvert(), "positions"_a.none(),
      "threads"_a, "isa"_a,
      "Solve a block of coordinates of all rows; the first row that failed, or -1.");

  m.def(
      "scores",
      [](In1<int64_t> indptr, In1<int32_t> indices, In2<float> factors, In2<float> others,
         Out1<float> scores, int threads, const std::string& isa) {
        const auto csr = matrix(indptr, indices, std::nullopt);
        const auto width = static_cast<int64_t>(factors.shape(1));
        require(
            static_cast<int64_t>(factors.shape(0)) == csr.rows && scores.size() == indices.size(),
            "one row of factors per row and one score per entry of the matrix are needed");
        require(others.shape(1) == factors.shape(1) && width == safecf::padded_width(width),
                "rows are not padded");
        const auto run = execution(threads);
        released([&] {
          safecf::scores(safecf::kernels_named(isa), run, csr, factors.data(), others.data(), width,
                         scores.data());
        });
      },
      "indptr"_a, "indices"_a, "factors"_a, "others"_a, "scores"_a.noconvert(), "threads"_a,
      "isa"_a, "Write the score of every entry of the matrix.");

  m.def(
      "scored_losses",
      [](In1<int64_t> indptr, In1<int32_t> indices, std::optional<In1<float>> weights,
         In1<float> pair_weight, In1<float> scores, In2<float> factors, In2<float> gram,
         Out1<float> losses, int threads, const std::string& isa) {
        const auto csr = matrix(indptr, indices, weights);
        const auto n = static_cast<size_t>(csr.rows);
        const auto width = static_cast<int64_t>(factors.shape(1));
        const auto d = static_cast<int64_t>(gram.shape(0));
        require(pair_weight.size() == n && losses.size() == n && factors.shape(0) == n &&
                    scores.size() == indices.size(),
                "one weight, loss and row of factors per row of the matrix is needed");
        require(gram.shape(1) == gram.shape(0) && width == safecf::padded_width(d),
                "rows are not padded");
        const auto run = execution(threads);
        released([&] {
          safecf::scored_losses(safecf::kernels_named(isa), run, csr, pair_weight.data(),
                                scores.data(), factors.data(), width, gram.data(), d,
                                losses.data());
        });
      },
      "indptr"_a, "indices"_a, "weights"_a.none(), "pair_weight"_a, "scores"_a, "factors"_a,
      "gram"_a, "losses"_a.noconvert(), "threads"_a, "isa"_a,
      "Write the loss of every row, given the scores of the matrix's entries.");

  m.def(
      "gram",
      [](In2<float> factors, std::optional<In1<float>> weight, Out2<float> gram, int threads,
         const std::string& isa) {
        const size_t d = factors.shape(1);
        require(gram.shape(0) == d && gram.shape(1) == d, "gram is not factors x factors");
        require(!weight || weight->size() == factors.shape(0), "one weight per row is needed");
        const auto run = execution(threads);
        released([&] {
          safecf::gram(safecf::kernels_named(isa), run, factors.data(), factors.shape(0), d,
                       weight ? weight->data() : nullptr, gram.data());
        });
      },
      "factors"_a, "weight"_a.none(), "gram"_a.noconvert(), "threads"_a, "isa"_a,
      "Write F' diag(weight) F.");

  m.def(
      "gram_block",
      [](In2<float> factors, std::optional<In1<float>> weight, int64_t first, Out2<float> gram,
         int threads, const std::string& isa) {
        const int64_t d = factors.shape(1), size = gram.shape(1);
        require(static_cast<int64_t>(gram.shape(0)) == d && 0 <= first && first + size <= d,
                "gram is not factors x block");
        require(!weight || weight->size() == factors.shape(0), "one weight per row is needed");
        const auto run = execution(threads);
        released([&] {
          safecf::gram_block(safecf::kernels_named(isa), run, factors.data(), factors.shape(0), d,
                             weight ? weight->data() : nullptr, first, size, gram.data());
        });
      },
      "factors"_a, "weight"_a.none(), "first"_a, "gram"_a.noconvert(), "threads"_a, "isa"_a,
      "Write the columns of F' diag(weight) F from `first` on.");

  m.def(
      "rotate",
      [](In2<float> factors, int64_t first, In2<float> basis, Out2<float> rotated, int threads,
         const std::string& isa) {
        const int64_t d = factors.shape(1), size = basis.shape(0), width = rotated.shape(1);
        require(static_cast<int64_t>(basis.shape(1)) == size, "basis is not square");
        require(0 <= first && first + size <= d, "the block is not among the factors");
        require(rotated.shape(0) == factors.shape(0) && size <= width,
                "rotated has not the rows of the factors");
        require(rotated.data() != factors.data() || (size == d && width == d),
                "a block is not rotated in place");
        const auto run = execution(threads);
        released([&] {
          safecf::rotate(safecf::kernels_named(isa), run, factors.data(), factors.shape(0), d,
                         first, size, basis.data(), rotated.data(), width);
        });
      },
      "factors"_a, "first"_a, "basis"_a, "rotated"_a.noconvert(), "threads"_a, "isa"_a,
      "Write F_block basis, F_block being columns of F from `first` on, rows padded with zeros; "
      "`rotated` may be F itself.");

  m.def(
      "roughen",
      [](In2<float> factors, Out2<uint32_t> rough, int threads, const std::string& isa) {
        const int64_t d = factors.shape(1);
        require(rough.shape(0) == factors.shape(0) &&
                    static_cast<int64_t>(rough.shape(1)) == safecf::rough_width(d) / 2,
                "rough rows are not padded");
        const auto run = execution(threads);
        released([&] {
          safecf::roughen(safecf::kernels_named(isa), run, factors.data(), factors.shape(0), d,
                          rough.data());
        });
      },
      "factors"_a, "rough"_a.noconvert(), "threads"_a, "isa"_a,
      "Write the factors as bfloat16, two to a word, rows padded with zeros.");

  m.def(
      "topk",
      [](In2<float> queries, In2<float> factors, std::optional<In2<uint32_t>> rough, float longest,
         std::optional<In1<int64_t>> exclude_indptr, std::optional<In1<int32_t>> exclude_indices,
         std::optional<In1<int32_t>> exclude_all, Out2<int32_t> ids, Out2<float> scores,
         int threads, const std::string& isa) {
        const size_t n = queries.shape(0), k = ids.shape(1);
        const int64_t d = factors.shape(1);
        require(queries.shape(1) == factors.shape(1), "queries and factors differ in width");
        require(!rough || (rough->shape(0) == factors.shape(0) &&
                           static_cast<int64_t>(rough->shape(1)) == safecf::rough_width(d) / 2),
                "rough has not the rows of the factors");
        require(ids.shape(0) == n && scores.shape(0) == n && scores.shape(1) == k,
                "ids and scores are not queries x k");
        require(k >= 1, "k is less than 1");
        require(exclude_indptr.has_value() == exclude_indices.has_value(),
                "exclude needs both of its arrays");
        require(!exclude_indptr || exclude_indptr->size() == n + 1,
                "exclude needs one row per query");
        require(!exclude_indptr ||
                    (*exclude_indptr)(n) == static_cast<int64_t>(exclude_indices->size()),
                "exclude's indptr does not end at the number of its indices");
        const safecf::Items items{factors.data(), static_cast<int64_t>(factors.shape(0)), d,
                                  rough ? rough->data() : nullptr, longest};
        const safecf::Excluded excluded{
            exclude_indptr ? exclude_indptr->data() : nullptr,
            exclude_indices ? exclude_indices->data() : nullptr,
            exclude_all ? exclude_all->data() : nullptr,
            exclude_all ? static_cast<int64_t>(exclude_all->size()) : 0};
        const auto run = execution(threads);
        released([&] {
          safecf::topk(safecf::kernels_named(isa), run, queries.data(), n, items, k, excluded,
                       ids.data(), scores.data());
        });
      },
      "queries"_a, "factors"_a, "rough"_a.none(), "longest"_a, "exclude_indptr"_a.none(),
      "exclude_indices"_a.none(), "exclude_all"_a.none(), "ids"_a.noconvert(),
      "scores"_a.noconvert(), "threads"_a, "isa"_a,
      "Write the best columns of queries @ factors.T per row and their scores.");

  m.def(
      "transpose",
      [](In1<int64_t> indptr, In1<int32_t> indices, std::optional<In1<float>> weights,
         Out1<int64_t> out_indptr, Out1<int32_t> out_indices,
         std::optional<Out1<float>> out_weights) {
        const auto csr = matrix(indptr, indices, weights);
        require(out_indptr.size() >= 1 && out_indices.size() == indices.size() &&
                    weights.has_value() == out_weights.has_value() &&
                    (!weights || out_weights->size() == weights->size()),
                "the transpose needs arrays of the same length");
        released([&] {
          safecf::transpose(csr, static_cast<int64_t>(out_indptr.size()) - 1, out_indptr.data(),
                            out_indices.data(), out_weights ? out_weights->data() : nullptr);
        });
      },
      "indptr"_a, "indices"_a, "weights"_a.none(), "out_indptr"_a.noconvert(),
      "out_indices"_a.noconvert(), "out_weights"_a.noconvert().none(),
      "Write the transposed matrix, entries in ascending order.");

  m.def(
      "positions",
      [](In1<int64_t> indptr, In1<int32_t> indices, int64_t columns, Out1<uint32_t> positions) {
        const auto csr = matrix(indptr, indices, std::nullopt);
        require(positions.size() == indices.size(), "one position per entry is needed");
        released([&] { safecf::positions(csr, columns, positions.data()); });
      },
      "indptr"_a, "indices"_a, "columns"_a, "positions"_a.noconvert(),
      "Write where the entries of the transposed matrix stand in the matrix.");
}
