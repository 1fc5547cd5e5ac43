// The table of kernels of one instruction set: compiled once for each, with SAFECF_ISA its name.
#include "cg.hpp"
#include "cholesky.hpp"
#include "counting.hpp"
#include "eigen.hpp"
#include "gather.hpp"
#include "gemm.hpp"
#include "quantile.hpp"
#include "search.hpp"
#include "table.hpp"

#define SAFECF_JOIN_(a, b) a##b
#define SAFECF_JOIN(a, b) SAFECF_JOIN_(a, b)
#define SAFECF_TEXT_(a) #a
#define SAFECF_TEXT(a) SAFECF_TEXT_(a)

namespace {

constexpr safecf::RowSolver kRowSolvers[] = {
    {"exact", false, false, exact,
     [](int64_t factors, int64_t, int64_t longest) { return exact_scratch(factors, longest); }},
    {"cg", true, true, cg<false>,
     [](int64_t, int64_t width, int64_t) { return cg_scratch(width); }},
    {"spectral-cg", true, true, cg<true>,
     [](int64_t, int64_t width, int64_t) { return cg_scratch(width); }},
};

constexpr safecf::Products kProducts = {
    .panel = kColumns,
    .packed_size = packed_size,
    .pack = pack,
    .multiply = multiply,
    .multiply_scratch = kMultiplyScratch,
    .gram = gram,
    .gram_scratch = gram_scratch,
};

float squared_error(const safecf::FixedRows& fixed, View<const int32_t> columns,
                    View<const float> weights, View<const float> x) {
  const ZeroSubnormals here;
  return fixed.bfloat16 ? squared_error<uint32_t>(fixed, columns, weights, x)
                        : squared_error<float>(fixed, columns, weights, x);
}

float dot3(View<const float> a, View<const float> b, View<const float> c) {
  Vec total = {};
  for (int64_t i = 0; i < a.size; i += kLanes) total += load(a, i) * load(b, i) * load(c, i);
  return sum(total);
}

float squared_norm(View<const float> x) { return dot(x, x); }

}  // namespace

namespace safecf {

extern const Kernels SAFECF_JOIN(kernels_, SAFECF_ISA);
constinit const Kernels SAFECF_JOIN(kernels_, SAFECF_ISA) = {
    .name = SAFECF_TEXT(SAFECF_ISA),
    .row_solvers = {kRowSolvers, sizeof(kRowSolvers) / sizeof(kRowSolvers[0])},
    .solve_general = solve_general,
    .exact_scratch = exact_scratch,
    .gradient = gradient,
    .read_indices = read_indices,
    .add_rows = add_rows,
    .gather_scores = gather_scores,
    .squared_error = squared_error,
    .dot3 = dot3,
    .squared_norm = squared_norm,
    .products = kProducts,
    .rough_products = kProducts,
    .to_bfloat16 = to_bfloat16,
    .score_rows = score_rows,
    .bfloat16_scores = bfloat16_scores,
    .collect = collect,
    .prune = prune,
    .count_equal = count_equal,
    .count_above_each = count_above_each,
    .loss_summary = loss_summary,
    .quantile_sums = quantile_sums,
    .kernel_weights = kernel_weights,
    .product = product,
    .product_scratch = product_scratch,
    .tall = kTall,
    .wide = kWide,
    .pack_tall = pack_tall,
    .multiply_panel = multiply_panel,
    .row_products = row_products,
    .subtract_rows = subtract_rows,
    .symmetric_product = symmetric_product,
    .pole_sums = pole_sums,
};

}  // namespace safecf
