// The quantile step's sums: blocks of users in parallel, their sums added in order.
#include <algorithm>
#include <cmath>
#include <vector>

#include "checks.hpp"
#include "core.hpp"

namespace safecf {
namespace {

constexpr int64_t kUsers = 4096;  // per block

int64_t blocks_of(int64_t users) { return (users + kUsers - 1) / kUsers; }

Losses block_of(const Losses& losses, int64_t block) {
  const int64_t first = block * kUsers, count = std::min(kUsers, losses.values.size - first);
  return {losses.values.slice(first, count),
          losses.counts ? losses.counts.slice(first, count) : losses.counts};
}

void check(const Losses& losses) {
  require(losses.values.size > 0, "there are no losses");
  require(!losses.counts || losses.counts.size == losses.values.size,
          "one count per loss is needed");
}

void check(const QuantilePoint& point) {
  require(point.bandwidth > 0 && std::isfinite(point.bandwidth),
          "the bandwidth is not positive and finite");
}

// One Sum per block, by sum_block(losses).
template <class Sum, class SumBlock>
std::vector<Sum> block_sums(const Losses& losses, const Execution& execution,
                            const SumBlock& sum_block) {
  std::vector<Sum> sums(static_cast<size_t>(blocks_of(losses.values.size)));
  parallel_for(static_cast<int64_t>(sums.size()), execution,
               [&](int64_t block) { sums[block] = sum_block(block_of(losses, block)); });
  return sums;
}

}  // namespace

LossSummary loss_summary(const Losses& losses, const Execution& execution) {
  check(losses);
  const auto sums = block_sums<LossSummary>(losses, execution, execution.kernels->loss_summary);
  LossSummary total = {0.0, 0.0, sums.front().low, sums.front().high};
  for (const LossSummary& block : sums) {
    total.size += block.size;
    total.sum += block.sum;
    if (block.low < total.low || block.low != block.low) total.low = block.low;
    if (block.high > total.high || block.high != block.high) total.high = block.high;
  }
  return total;
}

QuantileSums quantile_sums(const Losses& losses, const QuantilePoint& point,
                           const Execution& execution) {
  check(losses);
  check(point);
  const auto sums = block_sums<QuantileSums>(losses, execution, [&](const Losses& block) {
    return execution.kernels->quantile_sums(block, point);
  });
  QuantileSums total = {};
  for (const QuantileSums& block : sums) {
    total.weight += block.weight;
    total.density += block.density;
    total.check += block.check;
    total.distance += block.distance;
  }
  return total;
}

void kernel_weights(View<const double> losses, const QuantilePoint& point, View<double> weights,
                    const Execution& execution) {
  check(point);
  require(weights.size == losses.size, "one weight per loss is needed");
  check_apart({weights}, {losses});
  parallel_for(blocks_of(losses.size), execution, [&](int64_t block) {
    const auto values = block_of({losses, {}}, block).values;
    execution.kernels->kernel_weights(values, point, weights.slice(block * kUsers, values.size));
  });
}

}  // namespace safecf
