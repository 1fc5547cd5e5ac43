// Sums over a block of users' losses, for the quantile step.
#pragma once

#include "smoothing.hpp"

namespace {

// The sum of the lanes, in order.
SAFECF_INLINE double sum(Double v) {
  double total = v[0];
  SAFECF_UNROLL
  for (int i = 1; i < kDoubles; ++i) total += v[i];
  return total;
}

// Calls body(losses, counts) for all losses, a vector at a time; the last one is filled up with
// losses `padding`, counted zero times.
template <class Body>
SAFECF_INLINE void for_losses(const safecf::Losses& losses, double padding, Body body) {
  const View<const double> values = losses.values, counts = losses.counts;
  int64_t i = 0;
  for (; i + kDoubles <= values.size; i += kDoubles)
    body(load(values, i), counts ? load(counts, i) : splat(1.0));
  if (i == values.size) return;
  Double last = splat(padding), count = {};
  for (int lane = 0; i + lane < values.size; ++lane) {
    last[lane] = values[i + lane];
    count[lane] = counts ? counts[i + lane] : 1.0;
  }
  body(last, count);
}

inline safecf::LossSummary loss_summary(const safecf::Losses& losses) {
  Double size = {}, total = {}, low = splat(losses.values[0]), high = low;
  for_losses(losses, losses.values[0], [&](Double loss, Double count) SAFECF_ALWAYS {
    size += count;
    total += count * loss;
    const Long nan = loss != loss;
    low = choose((loss < low) | nan, loss, low);
    high = choose((loss > high) | nan, loss, high);
  });
  safecf::LossSummary found = {sum(size), sum(total), low[0], high[0]};
  for (int lane = 1; lane < kDoubles; ++lane) {
    if (low[lane] < found.low || low[lane] != low[lane]) found.low = low[lane];
    if (high[lane] > found.high || high[lane] != high[lane]) found.high = high[lane];
  }
  return found;
}

inline safecf::QuantileSums quantile_sums(const safecf::Losses& losses,
                                          const safecf::QuantilePoint& point) {
  const double h = point.bandwidth, xi = point.xi, slope = 0.5 - point.tail;
  return with_smoothing(point.kernel, [&](auto smoothed) SAFECF_ALWAYS {
    Double weight = {}, density = {}, check = {}, distance = {};
    for_losses(losses, xi, [&](Double loss, Double count) SAFECF_ALWAYS {
      const Double u = loss - xi;
      const Smoothed at = smoothed(u / h);
      weight += count * at.cdf;
      density += count * at.density;
      check += count * (0.5 * h * at.absolute + slope * u);
      distance += count * absolute(u);
    });
    return safecf::QuantileSums{sum(weight), sum(density), sum(check), sum(distance)};
  });
}

inline void kernel_weights(View<const double> losses, const safecf::QuantilePoint& point,
                           View<double> out) {
  const double h = point.bandwidth, xi = point.xi;
  with_smoothing(point.kernel, [&](auto smoothed) SAFECF_ALWAYS {
    int64_t i = 0;
    for_losses({losses, {}}, xi, [&](Double loss, Double) SAFECF_ALWAYS {
      const Double weight = smoothed((loss - xi) / h).cdf;
      if (i + kDoubles <= out.size)
        store(out, i, weight);
      else
        for (int64_t lane = 0; i + lane < out.size; ++lane) out[i + lane] = weight[lane];
      i += kDoubles;
    });
  });
}

}  // namespace
