// Scores of few queries, and the selection of the best ones.
#pragma once

#include "gather.hpp"
#include "gemm.hpp"

namespace {

// One query's scores of kLanes rows, summed as in a tile of `multiply`.
inline Vec score_lanes(const float* const (&rows)[kLanes], View<const float> query) {
  Vec total = {};
  for (int64_t k0 = 0; k0 < query.size; k0 += kDepth) {
    const int64_t end = min_of(k0 + kDepth, query.size);
    Vec chunk = {}, y[kLanes] = {};
    int64_t k = k0;
    for (; k + kLanes <= end; k += kLanes) {
      SAFECF_UNROLL
      for (int j = 0; j < kLanes; ++j) {
        __builtin_prefetch(rows[j] + k + 4 * kLineFloats);
        y[j] = load(rows[j] + k);
      }
      transpose(y);
      SAFECF_UNROLL
      for (int i = 0; i < kLanes; ++i) chunk = fused(query[k + i], y[i], chunk);
    }
    for (; k < end; ++k) {
      SAFECF_UNROLL
      for (int j = 0; j < kLanes; ++j) y[0][j] = rows[j][k];
      chunk = fused(query[k], y[0], chunk);
    }
    total = k0 == 0 ? chunk : total + chunk;
  }
  return total;
}

inline void score_rows(MatrixView<const float> rows, View<const int32_t> columns,
                       View<const float> query, View<float> scores) {
  const int64_t count = scores.size;
  for (int64_t r = 0; r < count; r += kLanes) {
    const float* group[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) {
      const int64_t at = min_of(r + j, count - 1);
      group[j] = rows.row(columns ? columns[at] : at).data;
    }
    const Vec found = score_lanes(group, query);
    if (r + kLanes <= count)
      store(scores, r, found);
    else
      for (int64_t j = r; j < count; ++j) scores[j] = found[j - r];
  }
}

inline void to_bfloat16(View<const float> from, View<uint32_t> to) {
  SAFECF_ASSERT(from.size == 2 * to.size && from.size % safecf::kBfloat16Pad == 0);
  for (int64_t i = 0; i < to.size; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      to[i + lane] = to_pair(from[2 * i + lane], from[2 * i + kLanes + lane]);
}

inline void bfloat16_scores(MatrixView<const uint32_t> rows, View<const float> query,
                            View<float> scores) {
  SAFECF_ASSERT(2 * rows.columns == query.size && rows.rows == scores.size);
  const ZeroSubnormals here;
  const int64_t count = scores.size;
  const uint32_t* first = rows.data;
  for (int64_t r = 0; r < count; r += kGroup, first += kGroup * rows.stride) {
    // the last group is filled up with its first row
    Group<uint32_t> group, next;
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) {
      group.rows[g] = r + g < count ? first + g * rows.stride : first;
      next.rows[g] = first + (g + kPrefetchRows) * rows.stride;
    }
    float found[kGroup];
    group_scores(group, next, query, found);
    for (int g = 0; g < kGroup && r + g < count; ++g) scores[r + g] = found[g];
  }
}

// Calls visit(i) for the scores above the threshold, in order.
template <class Visit>
SAFECF_INLINE void for_above(View<const float> scores, float threshold, Visit visit) {
  int64_t i = 0;
  for (; i + kLanes <= scores.size; i += kLanes)
    for (uint32_t bits = lanes_above(load(scores, i), threshold); bits; bits &= bits - 1)
      visit(i + __builtin_ctz(bits));
  for (; i < scores.size; ++i)
    if (scores[i] > threshold) visit(i);
}

inline int64_t collect(View<const float> scores, float threshold, int32_t first,
                       safecf::Candidates out) {
  int64_t found = 0;
  for_above(scores, threshold, [&](int64_t i) SAFECF_ALWAYS {
    out.scores[found] = scores[i];
    out.columns[found++] = first + static_cast<int32_t>(i);
  });
  return found;
}

inline int64_t count_above(View<const float> scores, float threshold) {
  int64_t found = 0, i = 0;
  for (; i + kLanes <= scores.size; i += kLanes)
    found += __builtin_popcount(lanes_above(load(scores, i), threshold));
  for (; i < scores.size; ++i) found += scores[i] > threshold;
  return found;
}

// Floats as integers in the same order, and back.
SAFECF_INLINE int64_t rank_of(float x) {
  const auto bits = __builtin_bit_cast(int32_t, x);
  return bits < 0 ? static_cast<int64_t>(INT32_MIN) - bits : bits;
}
SAFECF_INLINE float float_at(int64_t rank) {
  return __builtin_bit_cast(float, static_cast<int32_t>(rank < 0 ? INT32_MIN - rank : rank));
}

// Bisection over the floats between the threshold and the highest score.
inline int64_t prune(safecf::Candidates candidates, int64_t k, float* threshold) {
  const View<float> scores = candidates.scores;
  const View<int32_t> columns = candidates.columns;
  float highest = scores[0];
  for (const float score : scores) highest = score > highest ? score : highest;
  // at least k scores exceed `low`, and fewer than k exceed `high`
  int64_t low = rank_of(*threshold), high = rank_of(highest);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    const int64_t found = count_above(scores, float_at(middle));
    (found >= k ? low : high) = middle;
    if (k <= found && found <= k + k / 8) break;
  }
  *threshold = float_at(low);
  int64_t kept = 0;
  for_above(scores, *threshold, [&](int64_t i) SAFECF_ALWAYS {
    scores[kept] = scores[i];
    columns[kept++] = columns[i];
  });
  return kept;
}

}  // namespace
