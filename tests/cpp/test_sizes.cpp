// Offsets beyond 32 bits, and an eigensolver that is interrupted.
#include <sys/mman.h>

#include <algorithm>

#include "fuzz/targets.hpp"

namespace {

using namespace safecf;

// Offsets that start far beyond 2^32 must lead to the same entries. Of the columns before them, 85
// GB, no page is ever touched.
void test_offsets_have_64_bits(const Kernels* kernels) {
  fuzz::Input input(nullptr, 0);
  fuzz::HalfStep step(input);
  const auto found = [&](const Csr& matrix) {
    const Execution run{kernels, 3};
    const Rows rows{matrix, in(step.row_weight), in(step.col_weight), in(step.gram_weight),
                    in(step.ridge)};
    fuzz::Dense<float> factors = step.factors;
    std::vector<float> scores(step.matrix.columns.size()), lost(step.rows);
    solve_rows(rows, step.side.fixed(), row_solver_named(*kernels, "cg"), {3, 0.0f}, factors.out(),
               step.report(), run);
    losses(matrix, in(step.row_weight), {}, step.side.fixed(), factors.in(), out(lost), run);
    factors.values.insert(factors.values.end(), lost.begin(), lost.end());
    return factors.values;
  };
  const int64_t shift = int64_t{5} << 32, entries = shift + step.matrix.entries();
  std::vector<int64_t> shifted = step.matrix.offsets;
  for (int64_t& offset : shifted) offset += shift;
  void* const reserved = mmap(nullptr, entries * sizeof(int32_t), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return;  // a system that reserves no more than it has
  const View<int32_t> far(static_cast<int32_t*>(reserved), entries);
  std::copy(step.matrix.columns.begin(), step.matrix.columns.end(), far.data + shift);
  const Csr near{in(step.matrix.offsets), in(step.matrix.columns), {}};
  CHECK(step.rows > 2 && shifted.back() > shift + 2);
  CHECK(found(near) == found({in(shifted), far, {}}));
  munmap(reserved, entries * sizeof(int32_t));
}

void test_the_eigensolver_is_interrupted(const Kernels* kernels) {
  const int64_t n = 2000;
  std::vector<double> matrix(n * n, 1.0), values(n), basis(n * n);
  try {
    eigen({matrix.data(), n, n}, out(values), {basis.data(), n, n},
          {kernels, 2, [] { return true; }});
    CHECK(false);
  } catch (const Interrupted&) {
  }
}

}  // namespace

int main() {
  for (const Kernels* kernels : available_kernels()) test_offsets_have_64_bits(kernels);
  test_the_eigensolver_is_interrupted(available_kernels().front());
}
