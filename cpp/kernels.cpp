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

bool solve_cg(const safecf::RowSystem& a, const safecf::CgOptions& options, float* x,
              float* scratch) {
  const ZeroSubnormals here;
  return a.fixed.rough ? conjugate_gradients<uint32_t>(a, options, x, scratch)
                       : conjugate_gradients<float>(a, options, x, scratch);
}

void gradient(const safecf::RowSystem& a, const float* x, float* out) { gradient_of(a, x, out); }

float missed(safecf::Gathered fixed, const int32_t* columns, const float* weight, int64_t count,
             const float* x) {
  const ZeroSubnormals here;
  return fixed.rough ? missed_by<uint32_t>(fixed, columns, weight, count, x)
                     : missed_by<float>(fixed, columns, weight, count, x);
}

void to_rough(const float* from, int64_t count, uint32_t* to) {
  for (; count > 0; count -= 2 * kLanes, from += 2 * kLanes, to += kLanes)
    for (int i = 0; i < kLanes; ++i) to[i] = to_pair(from[i], from[i + kLanes]);
}

float dot3(const float* a, const float* b, const float* c, int64_t width) {
  Vec total = {};
  for (int64_t i = 0; i < width; i += kLanes) total += load(a + i) * load(b + i) * load(c + i);
  return sum(total);
}

void scores(const float* rows, const int32_t* columns, int64_t count, const float* query,
            int64_t width, float* scores) {
  const int64_t whole = width / kLanes * kLanes;
  const auto row = [&](int64_t r) { return rows + (columns ? columns[r] : r) * width; };
  for (int64_t r = 0; r < count; r += kGroup) {
    // the last group repeats its first row: equal rows get equal scores wherever they stand
    Group<float> group, next;
    float found[kGroup];
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) {
      group.rows[g] = row(r + g < count ? r + g : r);
      next.rows[g] = row(min_of(r + g + kAhead, count - 1));
    }
    scores_of(group, next, query, whole, found);
    for (int g = 0; g < kGroup && r + g < count; ++g) {
      for (int64_t i = whole; i < width; ++i) found[g] += group.rows[g][i] * query[i];
      scores[r + g] = found[g];
    }
  }
}

void rough_scores(const uint32_t* rows, int64_t count, const float* query, int64_t width,
                  float* scores) {
  const ZeroSubnormals here;
  const auto row = [&](int64_t r) { return rows + min_of(r, count - 1) * (width / 2); };
  for (int64_t r = 0; r < count; r += kGroup) {
    Group<uint32_t> group, next;
    float found[kGroup];
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) {
      group.rows[g] = row(r + g);
      next.rows[g] = row(r + g + kAhead);
    }
    scores_of(group, next, query, width, found);
    for (int g = 0; g < kGroup && r + g < count; ++g) scores[r + g] = found[g];
  }
}

// Calls see(i) for the scores above the threshold, in order.
template <class See>
SAFECF_INLINE void for_above(const float* scores, int64_t count, float threshold, See see) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (uint32_t bits = above(load(scores + i), threshold); bits; bits &= bits - 1)
      see(i + __builtin_ctz(bits));
  for (; i < count; ++i)
    if (scores[i] > threshold) see(i);
}

int64_t collect(const float* scores, int64_t count, float threshold, int32_t first,
                safecf::Hits hits) {
  int64_t found = 0;
  for_above(scores, count, threshold, [&](int64_t i) {
    hits.scores[found] = scores[i];
    hits.columns[found++] = first + static_cast<int32_t>(i);
  });
  return found;
}

int64_t count_above(const float* scores, int64_t count, float threshold) {
  int64_t found = 0, i = 0;
  for (; i + kLanes <= count; i += kLanes)
    found += __builtin_popcount(above(load(scores + i), threshold));
  for (; i < count; ++i) found += scores[i] > threshold;
  return found;
}

// Floats and integers in the same order.
SAFECF_INLINE int64_t place_of(float x) {
  const auto bits = __builtin_bit_cast(int32_t, x);
  return bits < 0 ? static_cast<int64_t>(INT32_MIN) - bits : bits;
}
SAFECF_INLINE float at_place(int64_t place) {
  return __builtin_bit_cast(float, static_cast<int32_t>(place < 0 ? INT32_MIN - place : place));
}

int64_t prune(safecf::Hits hits, int64_t count, int64_t k, float* threshold) {
  float highest = hits.scores[0];
  for (int64_t i = 1; i < count; ++i) highest = hits.scores[i] > highest ? hits.scores[i] : highest;
  // more than `low` are k hits at least, more than `high` are fewer
  int64_t low = place_of(*threshold), high = place_of(highest);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    const int64_t found = count_above(hits.scores, count, at_place(middle));
    (found >= k ? low : high) = middle;
    if (k <= found && found <= k + k / 8) break;
  }
  *threshold = at_place(low);
  int64_t kept = 0;
  for_above(hits.scores, count, *threshold, [&](int64_t i) {
    hits.scores[kept] = hits.scores[i];
    hits.columns[kept++] = hits.columns[i];
  });
  return kept;
}

}  // namespace

namespace safecf {

extern const Kernels SAFECF_JOIN(kernels_, SAFECF_ISA);
constinit const Kernels SAFECF_JOIN(kernels_, SAFECF_ISA) = {
    .name = SAFECF_TEXT(SAFECF_ISA),
    .solve_cg = solve_cg,
    .gradient = gradient,
    .solve_exact = solve_exact,
    .solve_general = solve_general,
    .exact_scratch = exact_scratch,
    .add_rows = add_rows,
    .gather_scores = gather_scores,
    .missed = missed,
    .dot3 = dot3,
    .panel = kColumns,
    .packed_size = packed_size,
    .pack = pack,
    .multiply = multiply,
    .multiply_scratch = kMultiplyScratch,
    .gram = gram,
    .gram_scratch = gram_scratch,
    .to_rough = to_rough,
    .scores = scores,
    .rough_scores = rough_scores,
    .collect = collect,
    .prune = prune,
};

}  // namespace safecf
