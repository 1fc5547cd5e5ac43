// The table of kernels of one instruction set: compiled once for each, with SAFECF_ISA its name.
#include "kernels.hpp"

#include "cg.hpp"
#include "cholesky.hpp"
#include "gather.hpp"
#include "gemm.hpp"

#define SAFECF_JOIN_(a, b) a##b
#define SAFECF_JOIN(a, b) SAFECF_JOIN_(a, b)
#define SAFECF_TEXT_(a) #a
#define SAFECF_TEXT(a) SAFECF_TEXT_(a)

namespace {

float dot3(const float* a, const float* b, const float* c, int64_t width) {
  Vec total = {};
  for (int64_t i = 0; i < width; i += kLanes) total += load(a + i) * load(b + i) * load(c + i);
  return sum(total);
}

void pack_all(Strided b, int64_t depth, int64_t columns, int64_t first_panel, int64_t last_panel,
              float* out) {
  pack(b, depth, columns, nullptr, first_panel, last_panel, out);
}

void scores(const float* rows, int64_t count, const float* query, int64_t width, float* scores) {
  const int64_t whole = width / kLanes * kLanes;
  for (int64_t r = 0; r < count; r += kGroup) {
    // the last group repeats its first row: equal rows get equal scores wherever they stand
    Group group;
    float found[kGroup];
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) group.rows[g] = rows + (r + g < count ? r + g : r) * width;
    scores_of(group, query, whole, found);
    for (int g = 0; g < kGroup && r + g < count; ++g) {
      for (int64_t i = whole; i < width; ++i) found[g] += group.rows[g][i] * query[i];
      scores[r + g] = found[g];
    }
  }
}

int64_t next_above(const float* scores, int64_t from, int64_t count, float threshold) {
  constexpr int64_t kStride = 4 * kLanes;  // scores looked at together
  for (int64_t i = from; i < count;) {
    if (i + kStride <= count) {
      const Vec low = larger(load(scores + i), load(scores + i + kLanes));
      const Vec high = larger(load(scores + i + 2 * kLanes), load(scores + i + 3 * kLanes));
      if (!any_above(larger(low, high), threshold)) {
        i += kStride;
        continue;
      }
    }
    while (i + kLanes <= count && !any_above(load(scores + i), threshold)) i += kLanes;
    const int64_t end = min_of(i + kLanes, count);
    for (; i < end; ++i)
      if (scores[i] > threshold) return i;
  }
  return count;
}

}  // namespace

namespace safecf {

extern const Kernels SAFECF_JOIN(kernels_, SAFECF_ISA);
constinit const Kernels SAFECF_JOIN(kernels_, SAFECF_ISA) = {
    .name = SAFECF_TEXT(SAFECF_ISA),
    .solve_cg = solve_cg,
    .solve_exact = solve_exact,
    .exact_scratch = exact_scratch,
    .missed = missed,
    .dot3 = dot3,
    .panel = kColumns,
    .packed_size = packed_size,
    .pack = pack_all,
    .multiply = multiply,
    .multiply_scratch = kMultiplyScratch,
    .gram = gram,
    .gram_scratch = gram_scratch,
    .scores = scores,
    .next_above = next_above,
};

}  // namespace safecf
