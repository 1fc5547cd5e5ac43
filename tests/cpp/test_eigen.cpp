// Phases of tasks, and the eigensolver with checked indices on every instruction set.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "check.hpp"
#include "phases.hpp"

namespace {

using namespace safecf;

// Every task of a phase adds to the sums of the phase before.
void test_phases_wait_for_each_other() {
  constexpr int64_t kTasks = 13, kPhases = 500;
  for (const int threads : {1, 2, 5}) {
    const Execution run{nullptr, threads, nullptr};
    Phases phases(kTasks, run);
    for (int again = 0; again < 3; ++again) {
      std::atomic<int64_t> calls{0};
      int64_t total = 0, phase = 0, sums[kTasks] = {};
      phases.run(
          kTasks, run,
          [&](int64_t task) {
            CHECK(task < 1 + phase % kTasks || phase == 0);
            sums[task] = total + task;
            ++calls;
          },
          [&]() -> int64_t {
            for (int64_t& sum : sums) total = (total + sum) % 1000003, sum = 0;
            return ++phase < kPhases ? 1 + phase % kTasks : 0;
          });
      int64_t expected_calls = kTasks, expected = 0;
      for (int64_t i = 0; i < kPhases; ++i) {
        const int64_t tasks = i == 0 ? kTasks : 1 + i % kTasks, before = expected;
        for (int64_t task = 0; task < tasks; ++task)
          expected = (expected + before + task) % 1000003;
        if (i > 0) expected_calls += tasks;
      }
      CHECK(calls == expected_calls && total == expected);
    }
  }
}

struct Eigen {
  std::vector<double> values, basis;

  Eigen(const std::vector<double>& matrix, int64_t n, const Execution& run)
      : values(n), basis(n * n) {
    eigen(in(matrix, n), out(values), out(basis, n), run);
  }
};

std::vector<double> random_gram(int64_t n) {
  const std::vector<float> rows = random_floats(2 * n * n, static_cast<unsigned>(n));
  std::vector<double> gram(n * n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t r = 0; r < 2 * n; ++r)
        gram[i * n + j] +=
            static_cast<double>(rows[r * n + i]) * static_cast<double>(rows[r * n + j]);
  return gram;
}

void test_vectors_are_orthogonal_and_solve(const Kernels& kernels, int64_t n) {
  const std::vector<double> gram = random_gram(n);
  const Eigen one(gram, n, {&kernels, 1, nullptr}), three(gram, n, {&kernels, 3, nullptr});
  CHECK(one.values == three.values && one.basis == three.basis);
  CHECK(std::is_sorted(one.values.begin(), one.values.end()));
  const auto basis = in(one.basis, n);
  const double tolerance = 1e-14 * static_cast<double>(n);
  for (int64_t a = 0; a < n; ++a) {
    std::vector<double> image(n);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) image[i] += gram[i * n + j] * basis(j, a);
    for (int64_t b = 0; b < n; ++b) {
      double dot = 0, product = 0;
      for (int64_t i = 0; i < n; ++i) {
        dot += basis(i, a) * basis(i, b);
        product += image[i] * basis(i, b);
      }
      CHECK(std::abs(dot - (a == b)) < tolerance);
      CHECK(std::abs(product - (a == b ? one.values[a] : 0)) < tolerance * one.values[n - 1]);
    }
  }
}

void test_it_is_interrupted(const Kernels& kernels) {
  const int64_t n = 2000;
  const std::vector<double> matrix(n * n, 1.0);
  bool caught = false;
  try {
    Eigen(matrix, n, {&kernels, 2, [] { return true; }});
  } catch (const Interrupted&) {
    caught = true;
  }
  CHECK(caught);
}

}  // namespace

int main() {
  test_phases_wait_for_each_other();
  for (const Kernels* kernels : available_kernels())
    for (const int64_t n : {1, 2, 3, 32, 47, 97, 150})
      test_vectors_are_orthogonal_and_solve(*kernels, n);
  test_it_is_interrupted(*available_kernels().front());
}
