// One function per native entry: an input becomes a call, whose results keep their promises.
#include "targets.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "catalogue.hpp"

namespace safecf::fuzz {
namespace {

bool all_within(const std::vector<int32_t>& values, int64_t low, int64_t high) {
  return std::all_of(values.begin(), values.end(),
                     [&](int32_t value) { return low <= value && value <= high; });
}

}  // namespace

void solve_rows(Input& input, const Execution& run) {
  HalfStep step(input);
  const auto solvers = run.kernels->row_solvers;
  const RowSolver& solver = solvers[input.byte() % solvers.size];
  const SolverOptions options{static_cast<int>(input.size(8)) - (overlap(input) ? 9 : 0),
                              input.number()};
  const Report report = overlap(input) ? Report{out(step.change), out(step.change)} : step.report();
  const Scribbler scribbler(step.matrix.offsets, step.matrix.columns);
  const int64_t failed = safecf::solve_rows(step.systems(), step.side.fixed(), solver, options,
                                            step.factors.out(), report, run);
  promise(-1 <= failed && failed < step.factors.rows);
  for (size_t i = 0; failed < 0 && i < step.norm.size(); ++i) promise(!(step.norm[i] < 0));
}

void gradients(Input& input, const Execution& run) {
  HalfStep step(input);
  Dense<float> found = input.dense(step.rows, step.d);
  const auto to = overlap(input) ? step.factors.out() : found.out();
  const Scribbler scribbler(step.matrix.offsets, step.matrix.columns);
  safecf::gradients(step.systems(), step.side.fixed(), step.factors.in(), to, run);
}

void losses(Input& input, const Execution& run) {
  HalfStep step(input);
  std::vector<float> found = input.numbers(step.rows);
  const auto ridge = maybe(input, step.ridge);
  const Scribbler scribbler(step.matrix.offsets, step.matrix.columns);
  safecf::losses(step.matrix.csr(), in(step.row_weight), ridge, step.side.fixed(),
                 step.factors.in(), overlap(input) ? out(step.row_weight) : out(found), run);
}

void update_block(Input& input, const Execution& run) {
  HalfStep step(input, overlap(input), true);
  const Dense<float> gram = input.dense(step.width, step.d);
  std::vector<float> scores = input.numbers(step.matrix.entries());
  std::vector<uint32_t> positions(static_cast<size_t>(input.about(step.matrix.entries())));
  for (uint32_t& position : positions)
    position = input.index<uint32_t>(static_cast<int64_t>(scores.size()));
  const bool placed = input.byte() % 2;
  const int64_t first = overlap(input) ? input.index<int64_t>(40) : step.width - step.d;
  const Scribbler scribbler(step.matrix.offsets, step.matrix.columns, positions);
  const int64_t failed = safecf::update_block(
      step.systems(), {step.side.fixed(), gram.in(), first}, step.factors.out(), step.report(),
      {out(scores), placed ? in(positions) : View<const uint32_t>()}, run);
  promise(-1 <= failed && failed < step.factors.rows);
}

void scores(Input& input, const Execution& run) {
  const int64_t rows = input.size(6), others = input.size(24), width = 16 * input.size(3);
  Sparse matrix = input.sparse(rows, others);
  const Dense<float> factors = input.dense(rows, width), fixed = input.dense(others, width);
  std::vector<float> found = input.numbers(matrix.entries());
  const Scribbler scribbler(matrix.offsets, matrix.columns);
  safecf::scores(matrix.csr(), factors.in(), fixed.in(), out(found), run);
}

void scored_losses(Input& input, const Execution& run) {
  const int64_t rows = input.size(6), d = input.size(40);
  Sparse matrix = input.sparse(rows, 24);
  std::vector<float> pair_weight = input.numbers(rows), ridge = input.numbers(rows);
  const std::vector<float> given = input.numbers(matrix.entries());
  const Dense<float> factors = input.dense(rows, padded_width(d)), gram = input.dense(d, d);
  std::vector<float> found = input.numbers(rows);
  const auto optional = maybe(input, ridge);
  const auto to = overlap(input) ? out(pair_weight) : out(found);
  const Scribbler scribbler(matrix.offsets, matrix.columns);
  safecf::scored_losses(matrix.csr(), in(pair_weight), optional, in(given), factors.in(), gram.in(),
                        to, run);
}

// The whole Gramian, or a block of its columns.
void gram(Input& input, const Execution& run) {
  const bool whole = input.byte() % 2;
  const int64_t rows = input.size(40), d = input.width(70), size = whole ? d : input.size(50);
  Dense<float> factors = input.dense(rows, d), found = input.dense(d, size);
  const std::vector<float> weight = input.numbers(rows);
  const auto optional = maybe(input, weight);
  const auto to = overlap(input) ? factors.out() : found.out();
  const int64_t first = input.index<int64_t>(d - size + 1);
  if (!whole) return safecf::gram_block(factors.in(), optional, first, to, run);
  safecf::gram(factors.in(), optional, to, run, input.byte() % 2 == 0);
  for (int64_t i = 0; i < found.rows; ++i)
    for (int64_t j = 0; j < i; ++j)
      promise(found.in()(i, j) == found.in()(j, i) || std::isnan(found.in()(i, j)));
}

void rotate(Input& input, const Execution& run) {
  const int64_t code = input.byte(), rows = code == 0 ? 200 : code % 30;
  const int64_t d = input.width(40), width = d + input.size(9);
  Dense<float> factors = input.dense(rows, width);
  const Dense<float> basis = input.dense(d, d);
  const int64_t first = input.index<int64_t>(width - d + 1);
  Dense<float> found = input.dense(rows, padded_width(d));
  const bool in_place = input.byte() % 8 == 0;
  safecf::rotate(factors.in(), first, basis.in(), in_place ? factors.out() : found.out(), run,
                 input.byte() % 2 == 0);
  if (in_place) return;
  for (int64_t row = 0; row < found.rows; ++row)
    for (int64_t i = basis.rows; i < found.columns; ++i) promise(found.in()(row, i) == 0.0f);
}

void eigen(Input& input, const Execution& run) {
  const int64_t d = input.size(100);
  auto gram = zeros<double>(d, input.about(d)), basis = zeros<double>(input.about(d), d);
  for (double& g : gram.values) g = input.number();
  std::vector<double> values = input.doubles(d);
  safecf::eigen(gram.in(), out(values), overlap(input) ? gram.out() : basis.out(), run);
  promise(std::is_sorted(values.begin(), values.end()));
}

void to_bfloat16(Input& input, const Execution& run) {
  const int64_t code = input.byte(), rows = code == 0 ? 200 : code % 30, d = input.width(70);
  const Dense<float> factors = input.dense(rows, d);
  auto words = zeros<uint32_t>(input.about(rows), input.about(bfloat16_width(d) / 2));
  safecf::to_bfloat16(factors.in(), words.out(), run);
}

void transpose(Input& input, const Execution&) {
  const int64_t columns = input.size(24);
  Sparse matrix = input.sparse(input.size(20), columns);
  const auto entries = static_cast<size_t>(input.about(matrix.entries()));
  std::vector<int64_t> offsets(static_cast<size_t>(input.about(columns + 1)));
  std::vector<int32_t> indices(entries);
  std::vector<float> weights(entries);
  const bool weighted = matrix.weighted != overlap(input);
  const auto to = overlap(input) ? out(matrix.columns) : out(indices);
  const Scribbler scribbler(matrix.offsets, matrix.columns);
  safecf::transpose(matrix.csr(), {out(offsets), to, weighted ? out(weights) : View<float>()});
  const Csr found{in(offsets), in(indices), {}};
  check(found);
  check_offsets(found);
  promise(all_within(indices, 0, matrix.rows() - 1));
}

void positions(Input& input, const Execution&) {
  const int64_t columns = overlap(input) ? input.index<int64_t>(100) : input.size(24);
  Sparse matrix = input.sparse(input.size(20), columns);
  std::vector<uint32_t> found(static_cast<size_t>(input.about(matrix.entries())));
  if (columns == int64_t{1} << 31) return;  // allowed, and slow
  const Scribbler scribbler(matrix.offsets, matrix.columns);
  safecf::positions(matrix.csr(), columns, out(found));
  for (const uint32_t position : found) promise(position < found.size());
}

namespace {

// What searches and ranks share.
struct Searched {
  Dense<float> items, queries;
  Sparse own;
  std::vector<int32_t> everywhere;
  bool has_own;

  explicit Searched(Input& input) {
    const uint8_t code = input.byte();
    const int64_t count = code < 2 ? 1020 + 20 * code : code % 40, d = input.width(24);
    // the fuzzer's bytes are for small problems
    items = count < 100 ? input.dense(count, d) : Dense<float>{count, d, {}};
    if (count >= 100) items.values.assign(static_cast<size_t>(count * d), 1.0f);
    for (size_t i = 0; count >= 100 && i < items.values.size(); i += 7)
      items.values[i] = static_cast<float>(i % 64);
    const int64_t rows = input.size(14);
    queries = input.dense(rows, d);
    own = input.sparse(rows, count, true);
    has_own = input.byte() % 4 != 0;
    if (input.byte() % 4 == 0)
      for (int64_t i = input.size(5); i > 0; --i) everywhere.push_back(input.index<int32_t>(count));
  }
};

}  // namespace

void search(Input& input, const Execution& run) {
  Searched given(input);
  Catalogue catalogue(given.items.in(), *run.kernels);
  const int64_t k = input.size(given.items.rows < 100 ? 70 : 10);
  for (int repeat = input.byte() % 3; repeat >= 0; --repeat) {
    auto ids = zeros<int32_t>(input.about(given.queries.rows), input.about(k));
    Dense<float> found = input.dense(given.queries.rows, k);
    MatrixView<float> scores = found.out();
    if (overlap(input) && found.values.size() <= given.queries.values.size())
      scores.data = given.queries.values.data();
    const Csr own = given.own.csr();
    const Scribbler scribbler(given.own.offsets, given.own.columns, given.everywhere);
    catalogue.search(given.queries.in(), {given.has_own ? &own : nullptr, in(given.everywhere)},
                     {ids.out(), scores}, run);
    promise(all_within(ids.values, -1, given.items.rows - 1));
  }
}

void ranks(Input& input, const Execution& run) {
  Searched given(input);
  Catalogue catalogue(given.items.in(), *run.kernels);
  Sparse targets = input.sparse(given.queries.rows, given.items.rows, true);
  std::vector<int32_t> found(static_cast<size_t>(input.about(targets.entries())), 0);
  const Csr own = given.own.csr();
  const auto to = overlap(input) ? out(targets.columns) : out(found);
  const Scribbler scribbler(given.own.offsets, given.own.columns, targets.offsets, targets.columns,
                            given.everywhere);
  catalogue.ranks(given.queries.in(), targets.csr(),
                  {given.has_own ? &own : nullptr, in(given.everywhere)}, to, run);
  promise(all_within(found, 0, given.items.rows));
}

void quantile(Input& input, const Execution& run) {
  std::vector<double> losses = input.doubles(input.size(40)), counts;
  if (input.byte() == 0) losses.resize(4096 + losses.size(), 0.5);  // two blocks
  const auto users = static_cast<int64_t>(losses.size());
  const bool counted = input.byte() % 2;
  if (counted) counts = input.doubles(users);
  QuantilePoint point{static_cast<Smoothing>(input.byte() % 5), input.number(), input.number(),
                      input.number()};
  if (input.byte() % 8 == 0) point.bandwidth = 5e-324;
  std::vector<double> weights(static_cast<size_t>(input.about(users)));
  safecf::kernel_weights(in(losses), point, overlap(input) ? out(losses) : out(weights), run);
  for (const double weight : weights) promise(!(weight < 0) && !(weight > 1 + 1e-12));
  const Losses given{in(losses), counted ? in(counts) : View<const double>()};
  loss_summary(given, run);
  quantile_sums(given, point, run);
}

}  // namespace safecf::fuzz
