// Tests of what only C++ sees: the parallel loop, the kernels of every instruction set against
// plain loops, and offsets beyond 32 bits.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <vector>

#include "core.hpp"
#include "dispatch.hpp"

namespace {

using namespace safecf;

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                \
    }                                                                              \
  } while (false)

std::vector<float> random_floats(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.5f);
  std::vector<float> out(count);
  for (float& x : out) x = normal(random);
  return out;
}

void test_every_task_runs_once_with_a_scratch_of_its_threads() {
  for (const int threads : {0, 1, 2, 9}) {
    std::vector<std::atomic<int>> seen(1000);
    std::atomic<int> scratches{0};
    parallel_for(
        1000, {threads},
        [&] {
          ++scratches;
          return 0;
        },
        [&](int64_t task, int) { ++seen[task]; });
    for (const auto& count : seen) CHECK(count == 1);
    if (threads > 0) CHECK(scratches <= threads);
  }
  parallel_for(0, {4}, [] { return 0; }, [](int64_t, int) { CHECK(false); });
}

void test_the_first_exception_ends_the_loop() {
  std::atomic<int> done{0};
  bool caught = false;
  try {
    parallel_for(
        1'000'000, {3}, [] { return 0; },
        [&](int64_t task, int) {
          if (task == 10) throw std::runtime_error("ten");
          ++done;
        });
  } catch (const std::runtime_error& error) {
    caught = std::string(error.what()) == "ten";
  }
  CHECK(caught);
  CHECK(done < 1'000'000);
}

void test_an_interrupt_ends_the_loop() {
  std::atomic<int64_t> done{0};
  bool caught = false;
  try {
    parallel_for(
        int64_t{1} << 60, {2, [] { return true; }}, [] { return 0; },
        [&](int64_t, int) { ++done; });
  } catch (const Interrupted&) {
    caught = true;
  }
  CHECK(caught);
}

void test_products_are_those_of_plain_loops(const Kernels& kernels) {
  for (const int64_t d : {1, 7, 12, 13, 31, 32, 33, 100, 257, 513}) {
    const int64_t n = 29;
    const auto rows = random_floats(n * d, 1), basis = random_floats(d * d, 2);
    std::vector<float> rotated(n * padded_width(d), -1.0f), square(d * d);
    rotate(kernels, {2}, rows.data(), n, d, 0, d, basis.data(), rotated.data(), padded_width(d));
    gram(kernels, {2}, rows.data(), n, d, nullptr, square.data());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < padded_width(d); ++j) {
        double expected = 0;
        for (int64_t k = 0; k < d && j < d; ++k) expected += rows[i * d + k] * basis[k * d + j];
        CHECK(std::abs(rotated[i * padded_width(d) + j] - expected) < 1e-4 * std::sqrt(d));
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

// The arrays of a matrix may lie anywhere in an address space of 64 bits: offsets that start far
// beyond 2^32 must lead to the same entries.
void test_offsets_have_64_bits(const Kernels& kernels) {
  const int64_t d = 8, rows = 5, columns_count = 40, shift = int64_t{5} << 32;
  std::vector<int64_t> offsets{0, 3, 3, 20, 21, 40}, shifted;
  std::vector<int32_t> columns;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t e = offsets[row]; e < offsets[row + 1]; ++e)
      columns.push_back(static_cast<int32_t>(2 * (e - offsets[row])));
  for (const int64_t offset : offsets) shifted.push_back(offset + shift);
  const auto far = reinterpret_cast<const int32_t*>(reinterpret_cast<uintptr_t>(columns.data()) -
                                                    static_cast<uintptr_t>(shift) * 4);

  const auto rotated = random_floats(columns_count * padded_width(d), 3);
  const std::vector<float> ones(columns_count, 1.0f), values(d, 0.5f);
  std::vector<float> basis(d * d, 0.0f);
  for (int64_t i = 0; i < d; ++i) basis[i * d + i] = 1.0f;
  const Fixed fixed{{rotated.data(), nullptr, padded_width(d)}, values.data(), basis.data(), d};
  const auto run = [&](const int64_t* at, const int32_t* entries) {
    const Csr matrix{at, entries, nullptr, rows};
    const Rows systems{matrix, ones.data(), ones.data(), ones.data(), ones.data()};
    std::vector<float> factors(rows * d, 0.1f), out(3 * rows);
    CHECK(solve_rows_exact(kernels, {2}, systems, fixed,
                           {factors.data(), out.data(), out.data() + rows}) == -1);
    losses(kernels, {2}, matrix, ones.data(), fixed, factors.data(), out.data() + 2 * rows);
    factors.insert(factors.end(), out.begin(), out.end());
    return factors;
  };
  CHECK(run(offsets.data(), columns.data()) == run(shifted.data(), far));
}

void test_solvers_agree_at_every_length(const Kernels& kernels) {
  const int64_t d = 20, items = 200, width = padded_width(d);
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> columns;
  for (const int64_t length : {0, 1, 15, 16, 17, 19, 20, 21, 127, 128, 129, 200}) {
    for (int64_t j = 0; j < length; ++j) columns.push_back(static_cast<int32_t>(j));
    offsets.push_back(offsets.back() + length);
  }
  const auto rows = static_cast<int64_t>(offsets.size()) - 1;
  auto rotated = random_floats(items * width, 5);
  for (int64_t i = 0; i < items; ++i)
    for (int64_t j = d; j < width; ++j) rotated[i * width + j] = 0.0f;
  const std::vector<float> ones(items, 1.0f), values(d, 0.5f);
  std::vector<float> basis(d * d, 0.0f);
  for (int64_t i = 0; i < d; ++i) basis[i * d + i] = 1.0f;
  const Fixed fixed{{rotated.data(), nullptr, width}, values.data(), basis.data(), d};
  const Rows systems{{offsets.data(), columns.data(), nullptr, rows},
                     ones.data(),
                     ones.data(),
                     ones.data(),
                     ones.data()};
  std::vector<float> exact(rows * d, 1.0f), iterated(rows * d, 1.0f), change(rows), norm(rows);
  CHECK(solve_rows_exact(kernels, {3}, systems, fixed,
                         {exact.data(), change.data(), norm.data()}) == -1);
  CHECK(solve_rows_cg(kernels, {3}, systems, fixed, {true, 100, 1e-6f},
                      {iterated.data(), change.data(), norm.data()}) == -1);
  std::vector<float> slopes(rows * d, 1.0f);
  gradients(kernels, {3}, systems, fixed, exact.data(), slopes.data());
  for (int64_t i = 0; i < rows * d; ++i) {
    CHECK(std::abs(exact[i] - iterated[i]) < 1e-4f);
    CHECK(std::abs(slopes[i]) < 1e-3f);
  }
}

void test_the_best_columns_are_found(const Kernels& kernels) {
  const int64_t d = 3, items = 2100;
  std::vector<float> factors(items * d, 0.0f);
  for (int64_t i = 0; i < items; ++i) factors[i * d] = static_cast<float>(i % 1000);
  const std::vector<int32_t> everywhere{999};
  for (const int64_t queries : {1, 40}) {
    std::vector<float> rows(queries * d, 1.0f), scores(queries * 4);
    std::vector<int32_t> ids(queries * 4), seen;
    std::vector<int64_t> offsets{0};
    for (int64_t row = 0; row < queries; ++row) {
      seen.push_back(998);
      offsets.push_back(row + 1);
    }
    topk(kernels, {2}, rows.data(), queries, {factors.data(), items, d}, 4,
         {offsets.data(), seen.data(), everywhere.data(), 1}, ids.data(), scores.data());
    for (int64_t row = 0; row < queries; ++row) {
      CHECK(ids[row * 4] == 1999 && ids[row * 4 + 1] == 1998);
      CHECK(ids[row * 4 + 2] == 997 && ids[row * 4 + 3] == 1997);
    }
  }
}

void test_a_matrix_transposed_twice_is_itself() {
  const std::vector<int64_t> offsets{0, 2, 2, 5};
  const std::vector<int32_t> columns{1, 3, 0, 1, 4};
  const std::vector<float> weights{1, 2, 3, 4, 5};
  std::vector<int64_t> down(6), back(4);
  std::vector<int32_t> rows(5), again(5);
  std::vector<float> turned(5), returned(5);
  transpose({offsets.data(), columns.data(), weights.data(), 3}, 5, down.data(), rows.data(),
            turned.data());
  transpose({down.data(), rows.data(), turned.data(), 5}, 3, back.data(), again.data(),
            returned.data());
  CHECK(back == offsets && again == columns && returned == weights);
}

}  // namespace

int main() {
  test_every_task_runs_once_with_a_scratch_of_its_threads();
  test_the_first_exception_ends_the_loop();
  test_an_interrupt_ends_the_loop();
  for (const Kernels* kernels : available_kernels()) {
    test_products_are_those_of_plain_loops(*kernels);
    test_offsets_have_64_bits(*kernels);
    test_solvers_agree_at_every_length(*kernels);
    test_the_best_columns_are_found(*kernels);
  }
  test_a_matrix_transposed_twice_is_itself();
  std::puts("all native tests passed");
}
