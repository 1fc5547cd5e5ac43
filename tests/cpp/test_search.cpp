// Searches: one query, few and many give the same bits, with every instruction set.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "catalogue.hpp"
#include "check.hpp"

namespace {

using namespace safecf;

struct Result {
  std::vector<int32_t> ids;
  std::vector<float> scores;
  bool operator==(const Result&) const = default;
};

Result search(Catalogue& catalogue, MatrixView<const float> queries, int64_t k,
              const Excluded& excluded, const Execution& run) {
  Result found{std::vector<int32_t>(queries.rows * k), std::vector<float>(queries.rows * k)};
  catalogue.search(queries, excluded, {out(found.ids, k), out(found.scores, k)}, run);
  return found;
}

void test_one_query_and_a_batch_give_the_same_bits(const Execution& run) {
  for (const int64_t d : {1, 3, 16, 31, 64, 256, 257, 300, 600}) {
    for (const int64_t count : {1, 31, 33, 1025, 2100}) {
      const int64_t num_queries = 40, k = 7;
      const auto items = random_floats(count * d, 1), queries = random_floats(num_queries * d, 2);
      Catalogue packed(in(items, d), *run.kernels), catalogue(in(items, d), *run.kernels);
      const Result batch = search(packed, in(queries, d), k, {}, run);
      CHECK(packed.bytes() >= count * d * 4);
      for (int repeat = 0; repeat < 2; ++repeat) {  // in float32, then in bfloat16
        for (int64_t row = 0; row < num_queries; row += 3) {
          const Result one = search(catalogue, in(queries, d).rows_from(row, 1), k, {}, run);
          CHECK(std::equal(one.ids.begin(), one.ids.end(), batch.ids.begin() + row * k));
          CHECK(std::equal(one.scores.begin(), one.scores.end(), batch.scores.begin() + row * k));
        }
      }
      CHECK((catalogue.bytes() > 0) == (d > 16 && k < count / 8));
      for (int64_t i = 0; i < std::min(k, count); ++i) {
        double score = 0;
        for (int64_t j = 0; j < d; ++j) score += items[batch.ids[i] * d + j] * queries[j];
        CHECK(std::abs(score - batch.scores[i]) < 1e-4);
      }
    }
  }
}

// Ties rank by index, excluded columns are left out, and what is missing is padded.
void test_the_best_columns_are_found(const Execution& run) {
  const int64_t d = 40, count = 2100;
  std::vector<float> items(count * d, 0.0f);
  for (int64_t i = 0; i < count; ++i) items[i * d] = static_cast<float>(i % 1000);
  const std::vector<int32_t> everywhere{1500, 999};
  for (const int64_t num_queries : {1, 1, 40}) {
    const std::vector<float> queries(num_queries * d, 1.0f);
    std::vector<int32_t> seen;
    std::vector<int64_t> offsets{0};
    for (int64_t row = 0; row < num_queries; ++row) {
      seen.push_back(998);
      offsets.push_back(row + 1);
    }
    const Csr own{in(offsets), in(seen), {}};
    Catalogue catalogue(in(items, d), *run.kernels);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const Result found = search(catalogue, in(queries, d), 4, {&own, in(everywhere)}, run);
      for (int64_t row = 0; row < num_queries; ++row) {
        CHECK(found.ids[row * 4] == 1999 && found.ids[row * 4 + 1] == 1998);
        CHECK(found.ids[row * 4 + 2] == 997 && found.ids[row * 4 + 3] == 1997);
      }
    }
    const Result all = search(catalogue, in(queries, d), count, {&own, in(everywhere)}, run);
    for (int64_t row = 0; row < num_queries; ++row) {
      CHECK(all.ids[(row + 1) * count - 4] == 2000 && all.ids[(row + 1) * count - 3] == -1);
      CHECK(all.scores[(row + 1) * count - 3] == -FLT_MAX);
    }
  }
}

// A rank is the place in a search of all columns, or 0 where a column is excluded.
void test_ranks_are_places_in_a_search(const Execution& run) {
  for (const int64_t count : {1, 33, 1025, 2100}) {
    const int64_t d = 40, num_queries = 100;
    auto items = random_floats(count * d, 1);
    for (int64_t i = 0; i < count * d; ++i) items[i] = items[(i / d % 50) * d + i % d];  // ties
    const auto queries = random_floats(num_queries * d, 2);
    std::vector<int32_t> wanted, seen;
    std::vector<int64_t> wanted_offsets{0}, seen_offsets{0};
    for (int64_t row = 0; row < num_queries; ++row) {
      for (int32_t item = 0; item < count; item += static_cast<int32_t>(1 + row))
        wanted.push_back(item);
      for (int32_t item = 2; item < count; item += static_cast<int32_t>(3 + row))
        seen.push_back(item);
      wanted_offsets.push_back(static_cast<int64_t>(wanted.size()));
      seen_offsets.push_back(static_cast<int64_t>(seen.size()));
    }
    const Csr targets{in(wanted_offsets), in(wanted), {}}, own{in(seen_offsets), in(seen), {}};
    const std::vector<int32_t> everywhere{static_cast<int32_t>(count / 2)};
    Catalogue catalogue(in(items, d), *run.kernels);
    const Excluded excluded{&own, in(everywhere)};
    const Result all = search(catalogue, in(queries, d), count, excluded, run);
    std::vector<int32_t> ranks(wanted.size(), -1);
    catalogue.ranks(in(queries, d), targets, excluded, out(ranks), run);
    for (int64_t row = 0; row < num_queries; ++row) {
      const auto ids = in(all.ids).slice(row * count, count);
      for (int64_t at = wanted_offsets[row]; at < wanted_offsets[row + 1]; ++at) {
        const auto* const found = std::find(ids.begin(), ids.end(), wanted[at]);
        CHECK(ranks[at] == (found == ids.end() ? 0 : found - ids.begin() + 1));
      }
    }
  }
}

void test_nothing_to_search(const Execution& run) {
  const std::vector<float> items, queries(80, 1.0f);
  Catalogue catalogue({items.data(), 0, 2}, *run.kernels);
  for (const int64_t num_queries : {1, 1, 40}) {
    const Result found = search(catalogue, in(queries, 2).rows_from(0, num_queries), 2, {}, run);
    for (const int32_t id : found.ids) CHECK(id == -1);
  }
}

}  // namespace

int main() {
  for (const Kernels* kernels : available_kernels()) {
    for (const int threads : {1, 3}) {
      const Execution run{kernels, threads};
      test_one_query_and_a_batch_give_the_same_bits(run);
      test_the_best_columns_are_found(run);
      test_ranks_are_places_in_a_search(run);
      test_nothing_to_search(run);
    }
  }
  std::puts("all tests of the search passed");
}
