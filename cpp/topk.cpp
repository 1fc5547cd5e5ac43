// The best columns of queries items' per row: scores in tiles, a heap per row.
#include <algorithm>
#include <cfloat>
#include <limits>
#include <optional>

#include "packed.hpp"

namespace safecf {
namespace {

constexpr int64_t kQueries = 96;    // rows per task
constexpr int64_t kColumns = 1024;  // columns per tile of scores
constexpr int64_t kFew = 8;         // queries for which packing the items would take longer

struct Hit {
  float score;
  int32_t id;
};

// "Better": the higher score, then the lower index.
inline bool better(const Hit& a, const Hit& b) {
  return a.score > b.score || (a.score == b.score && a.id < b.id);
}

// Sets the scores of the excluded columns in [first, last) to minus infinity and moves on.
inline void strike(const int32_t*& next, const int32_t* end, int64_t first, int64_t last,
                   float* scores) {
  for (; next != end && *next < last; ++next)
    if (*next >= first) scores[*next - first] = -std::numeric_limits<float>::infinity();
}

struct Scratch {
  Buffer scores, product;
  std::vector<std::vector<Hit>> heaps;
  std::vector<const int32_t*> excluded, everywhere;
};

}  // namespace

void topk(const Kernels& kernels, const Execution& execution, const float* queries,
          int64_t query_count, const float* items, int64_t item_count, int64_t factors, int64_t k,
          const Excluded& excluded, int32_t* ids, float* scores) {
  std::optional<Packed> packed;
  if (query_count > kFew)
    packed.emplace(kernels, execution, Strided{items, 1, factors}, factors, item_count);
  const auto score = [&](int64_t begin, int64_t end, int64_t first, int64_t last,
                         Scratch& scratch) {
    const float* const rows = queries + begin * factors;
    float* const tile = scratch.scores.data();
    if (packed) {
      packed->multiply(kernels, {rows, factors, 1}, end - begin, first, last, tile, kColumns,
                       scratch.product.data());
      return;
    }
    for (int64_t row = 0; row < end - begin; ++row)
      kernels.scores(items + first * factors, last - first, rows + row * factors, factors,
                     tile + row * kColumns);
  };
  const int64_t block = std::min(kQueries, query_count);
  const auto make_scratch = [&] {
    return Scratch{Buffer(block * kColumns), Buffer(kernels.multiply_scratch),
                   std::vector<std::vector<Hit>>(block), std::vector<const int32_t*>(block),
                   std::vector<const int32_t*>(block)};
  };
  parallel_for(
      (query_count + kQueries - 1) / kQueries, execution, make_scratch,
      [&](int64_t task, Scratch& scratch) {
        const int64_t begin = task * kQueries, end = std::min(query_count, begin + kQueries);
        for (int64_t row = begin; row < end; ++row) {
          scratch.heaps[row - begin].clear();
          if (excluded.offsets)
            scratch.excluded[row - begin] = excluded.columns + excluded.offsets[row];
          scratch.everywhere[row - begin] = excluded.everywhere;
        }
        for (int64_t first = 0; first < item_count; first += kColumns) {
          const int64_t last = std::min(item_count, first + kColumns);
          score(begin, end, first, last, scratch);
          for (int64_t row = begin; row < end; ++row) {
            float* const tile = scratch.scores.data() + (row - begin) * kColumns;
            if (excluded.offsets)
              strike(scratch.excluded[row - begin], excluded.columns + excluded.offsets[row + 1],
                     first, last, tile);
            strike(scratch.everywhere[row - begin], excluded.everywhere + excluded.everywhere_count,
                   first, last, tile);
            std::vector<Hit>& heap = scratch.heaps[row - begin];
            float threshold = static_cast<int64_t>(heap.size()) < k
                                  ? -std::numeric_limits<float>::infinity()
                                  : heap.front().score;
            for (int64_t j = 0;
                 (j = kernels.next_above(tile, j, last - first, threshold)) < last - first; ++j) {
              if (static_cast<int64_t>(heap.size()) == k) {
                std::pop_heap(heap.begin(), heap.end(), better);
                heap.pop_back();
              }
              heap.push_back({tile[j], static_cast<int32_t>(first + j)});
              std::push_heap(heap.begin(), heap.end(), better);
              if (static_cast<int64_t>(heap.size()) == k) threshold = heap.front().score;
            }
          }
        }
        for (int64_t row = begin; row < end; ++row) {
          std::vector<Hit>& heap = scratch.heaps[row - begin];
          std::sort(heap.begin(), heap.end(), better);
          for (int64_t i = 0; i < k; ++i) {
            const bool found = i < static_cast<int64_t>(heap.size());
            ids[row * k + i] = found ? heap[i].id : -1;
            scores[row * k + i] = found ? heap[i].score : -FLT_MAX;
          }
        }
      });
}

}  // namespace safecf
