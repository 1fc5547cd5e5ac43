// Scores of few queries, and the selection of the best ones.
#pragma once

#include "gather.hpp"
#include "gemm.hpp"

namespace {

// One query's scores of kColumns rows, summed as in a tile of `multiply`: the rows are transposed
// kLanes coordinates at a time into a strip of a panel.
inline void score_panel(const float* const (&rows)[kColumns], View<const float> query,
                        float* scores) {
  alignas(safecf::kCacheLine) float strip[kLanes * kColumns];
  Vec left_total = {}, right_total = {};
  for (int64_t k0 = 0; k0 < query.size; k0 += kDepth) {
    const int64_t end = min_of(k0 + kDepth, query.size);
    Vec left = {}, right = {};
    for (int64_t k = k0; k < end; k += kLanes) {
      const int64_t deep = min_of(kLanes, end - k), whole = deep / 4 * 4;
      for (int64_t j = 0; j < kColumns; j += 4) {
        const float* const four[4] = {rows[j] + k, rows[j + 1] + k, rows[j + 2] + k,
                                      rows[j + 3] + k};
        for (const float* row : four) __builtin_prefetch(row + 2 * kLanes);
        for (int64_t i = 0; i < whole; i += 4) {
          const float* const quad[4] = {four[0] + i, four[1] + i, four[2] + i, four[3] + i};
          transpose_quad(quad, strip + i * kColumns + j, kColumns);
        }
        for (int64_t i = whole; i < deep; ++i)
          for (int g = 0; g < 4; ++g) strip[i * kColumns + j + g] = four[g][i];
      }
      for (int64_t i = 0; i < deep; ++i) {
        left += query[k + i] * load(strip + i * kColumns);
        right += query[k + i] * load(strip + i * kColumns + kLanes);
      }
    }
    left_total = k0 == 0 ? left : left_total + left;
    right_total = k0 == 0 ? right : right_total + right;
  }
  store(scores, left_total);
  store(scores + kLanes, right_total);
}

inline void score_rows(MatrixView<const float> rows, View<const int32_t> columns,
                       View<const float> query, View<float> scores) {
  const int64_t count = scores.size;
  for (int64_t r = 0; r < count; r += kColumns) {
    const float* panel[kColumns];
    for (int64_t j = 0; j < kColumns; ++j) {
      const int64_t at = min_of(r + j, count - 1);
      panel[j] = rows.row(columns ? columns[at] : at).data;
    }
    if (r + kColumns <= count) {
      score_panel(panel, query, scores.slice(r, kColumns).data);
    } else {
      alignas(safecf::kCacheLine) float whole[kColumns];
      score_panel(panel, query, whole);
      for (int64_t j = r; j < count; ++j) scores[j] = whole[j - r];
    }
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
  const ZeroSubnormals here;
  const int64_t count = scores.size;
  const auto row = [&](int64_t r) SAFECF_ALWAYS { return rows.row(min_of(r, count - 1)).data; };
  for (int64_t r = 0; r < count; r += kGroup) {
    Group<uint32_t> group, next;
    float found[kGroup];
    SAFECF_UNROLL
    for (int g = 0; g < kGroup; ++g) {
      group.rows[g] = row(r + g);
      next.rows[g] = row(r + g + kPrefetchRows);
    }
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
