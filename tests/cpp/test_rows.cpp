// The kernels of every instruction set against plain loops, the solvers against each other, and
// offsets beyond 32 bits.
#include <sys/mman.h>

#include <algorithm>
#include <cmath>

#include "check.hpp"

namespace {

using namespace safecf;

void test_products_are_those_of_plain_loops(const Execution& run) {
  for (const int64_t d : {1, 7, 12, 13, 31, 32, 33, 100, 257, 513}) {
    const int64_t n = 29, width = padded_width(d);
    const auto rows = random_floats(n * d, 1), basis = random_floats(d * d, 2);
    std::vector<float> rotated(n * width, -1.0f), square(d * d);
    rotate(in(rows, d), 0, in(basis, d), out(rotated, width), run);
    gram(in(rows, d), {}, out(square, d), run);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        double expected = 0;
        for (int64_t k = 0; k < d && j < d; ++k) expected += rows[i * d + k] * basis[k * d + j];
        CHECK(std::abs(rotated[i * width + j] - expected) < 1e-4 * std::sqrt(d));
      }
    }
    for (int64_t i = 0; i < d; i += 5) {
      for (int64_t j = 0; j < d; ++j) {
        double expected = 0;
        for (int64_t k = 0; k < n; ++k) expected += rows[k * d + i] * rows[k * d + j];
        CHECK(std::abs(square[i * d + j] - expected) < 1e-4);
      }
    }
  }
}

// What the tests of the solvers share: all weights and ridges are one, G = I / 2.
struct Problem {
  int64_t d, others;
  std::vector<int64_t> offsets;
  std::vector<int32_t> columns;
  std::vector<float> ones, values, basis, rotated;

  Problem(int64_t d, int64_t others, const std::vector<int64_t>& lengths)
      : d(d),
        others(others),
        offsets{0},
        ones(std::max<size_t>(others, lengths.size()), 1.0f),
        values(d, 0.5f),
        basis(d * d, 0.0f),
        rotated(random_floats(others * padded_width(d), 5)) {
    for (const int64_t length : lengths) {
      for (int64_t j = 0; j < length; ++j)
        columns.push_back(static_cast<int32_t>(j * others / length));
      offsets.push_back(offsets.back() + length);
    }
    for (int64_t i = 0; i < d; ++i) basis[i * d + i] = 1.0f;
    for (int64_t i = 0; i < others; ++i)
      for (int64_t j = d; j < padded_width(d); ++j) rotated[i * padded_width(d) + j] = 0.0f;
  }

  int64_t rows() const { return static_cast<int64_t>(offsets.size()) - 1; }
  Csr matrix() const { return {in(offsets), in(columns), {}}; }
  Rows systems(const Csr& matrix) const {
    const View<const float> weight = in(ones).slice(0, rows());
    return {matrix, weight, in(ones).slice(0, others), weight, weight};
  }
  Fixed fixed() const { return {{in(rotated, padded_width(d)), {}}, in(values), in(basis, d)}; }
};

int64_t solve(const char* name, const Rows& rows, const Fixed& fixed, MatrixView<float> factors,
              const Report& report, const Execution& run) {
  const RowSolver& solver = row_solver_named(*run.kernels, name);
  return solve_rows(rows, fixed, solver, {200, 1e-6f}, factors, report, run);
}

// Offsets that start far beyond 2^32 must lead to the same entries. Of the columns before them, 85
// GB, no page is ever touched.
void test_offsets_have_64_bits(const Execution& run) {
  const Problem problem(8, 40, {3, 0, 17, 1, 19});
  const int64_t d = problem.d, rows = problem.rows(), shift = int64_t{5} << 32;
  std::vector<int64_t> shifted;
  for (const int64_t offset : problem.offsets) shifted.push_back(offset + shift);
  const int64_t entries = shift + static_cast<int64_t>(problem.columns.size());
  void* const reserved = mmap(nullptr, entries * sizeof(int32_t), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return;  // a system that reserves no more than it has
  const View<int32_t> far(static_cast<int32_t*>(reserved), entries);
  std::copy(problem.columns.begin(), problem.columns.end(), far.data + shift);
  const auto solved = [&](const Csr& matrix) {
    std::vector<float> factors(rows * d, 0.1f), change(rows), norm(rows), found(rows);
    CHECK(solve("exact", problem.systems(matrix), problem.fixed(), out(factors, d),
                {out(change), out(norm)}, run) == -1);
    losses(matrix, in(problem.ones).slice(0, rows), {}, problem.fixed(), in(factors, d), out(found),
           run);
    for (const auto& more : {change, norm, found})
      factors.insert(factors.end(), more.begin(), more.end());
    return factors;
  };
  CHECK(solved(problem.matrix()) == solved({in(shifted), far, {}}));
  munmap(reserved, entries * sizeof(int32_t));
}

void test_solvers_agree_at_every_length(const Execution& run) {
  for (const int64_t d : {5, 16, 20, 33, 64, 300}) {
    const Problem problem(d, 400, {0, 1, 15, 16, 17, 19, 20, 21, 63, 64, 65, 127, 128, 129, 400});
    const int64_t rows = problem.rows();
    const Rows systems = problem.systems(problem.matrix());
    std::vector<float> exact(rows * d, 1.0f), iterated(rows * d, 1.0f), change(rows), norm(rows);
    const Report report{out(change), out(norm)};
    CHECK(solve("exact", systems, problem.fixed(), out(exact, d), report, run) == -1);
    CHECK(solve("spectral-cg", systems, problem.fixed(), out(iterated, d), report, run) == -1);
    std::vector<float> slopes(rows * d, 1.0f);
    gradients(systems, problem.fixed(), in(exact, d), out(slopes, d), run);
    for (int64_t i = 0; i < rows * d; ++i) {
      CHECK(std::abs(exact[i] - iterated[i]) < 1e-4f);
      CHECK(std::abs(slopes[i]) < 2e-3f);
    }
  }
}

// One block of all coordinates is the exact solver, and the scores follow.
void test_a_block_update_of_everything_is_exact(const Execution& run) {
  const int64_t d = 20, width = padded_width(d);
  const Problem problem(d, 200, {0, 1, 19, 20, 21, 130});
  const int64_t rows = problem.rows(), entries = static_cast<int64_t>(problem.columns.size());
  const Rows systems = problem.systems(problem.matrix());
  std::vector<float> gram(d * d, 0.0f), start = random_floats(rows * d, 9), exact = start;
  for (int64_t i = 0; i < d; ++i) gram[i * d + i] = 0.5f;
  const auto padded = [&](const std::vector<float>& factors) {
    std::vector<float> wide(rows * width, 0.0f);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < d; ++j) wide[i * width + j] = factors[i * d + j];
    return wide;
  };
  std::vector<float> change(rows), norm(rows), found(entries), expected(entries);
  const Report report{out(change), out(norm)};
  const auto others = in(problem.rotated, width);
  scores(problem.matrix(), in(padded(start), width), others, out(found), run);
  CHECK(update_block(systems, {problem.fixed(), in(gram, d), 0}, out(start, d), report,
                     {out(found), {}}, run) == -1);
  CHECK(solve("exact", systems, problem.fixed(), out(exact, d), report, run) == -1);
  scores(problem.matrix(), in(padded(exact), width), others, out(expected), run);
  for (int64_t i = 0; i < rows * d; ++i) CHECK(std::abs(start[i] - exact[i]) < 1e-4f);
  for (int64_t e = 0; e < entries; ++e) CHECK(std::abs(found[e] - expected[e]) < 1e-4f);
  std::vector<float> direct(rows), scored(rows);
  const auto weight = in(problem.ones).slice(0, rows);
  for (const View<const float> ridge : {View<const float>{}, weight}) {
    losses(problem.matrix(), weight, ridge, problem.fixed(), in(exact, d), out(direct), run);
    scored_losses(problem.matrix(), weight, ridge, in(expected), in(padded(exact), width),
                  in(gram, d), out(scored), run);
    for (int64_t i = 0; i < rows; ++i) CHECK(std::abs(direct[i] - scored[i]) < 1e-4f);
  }
}

void test_a_matrix_transposed_twice_is_itself() {
  const std::vector<int64_t> offsets{0, 2, 2, 5};
  const std::vector<int32_t> columns{1, 3, 0, 1, 4};
  const std::vector<float> weights{1, 2, 3, 4, 5};
  std::vector<int64_t> down(6), back(4);
  std::vector<int32_t> rows(5), again(5);
  std::vector<float> moved(5), returned(5);
  transpose({in(offsets), in(columns), in(weights)}, {out(down), out(rows), out(moved)});
  transpose({in(down), in(rows), in(moved)}, {out(back), out(again), out(returned)});
  CHECK(back == offsets && again == columns && returned == weights);
  std::vector<uint32_t> places(5);
  positions({in(offsets), in(columns), {}}, 5, out(places));
  for (int64_t e = 0; e < 5; ++e) CHECK(weights[places[e]] == moved[e]);
}

}  // namespace

int main() {
  for (const Kernels* kernels : available_kernels()) {
    for (const int threads : {1, 3}) {
      const Execution run{kernels, threads};
      test_products_are_those_of_plain_loops(run);
      test_offsets_have_64_bits(run);
      test_solvers_agree_at_every_length(run);
      test_a_block_update_of_everything_is_exact(run);
    }
  }
  test_a_matrix_transposed_twice_is_itself();
  std::puts("all tests of the rows passed");
}
