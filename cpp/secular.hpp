// Roots of the secular equation: the eigenvalues of a diagonal matrix plus one of rank one.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/table.hpp"

namespace safecf {

struct Root {
  double origin, shift;  // lambda = origin + shift
};

// Root j of 1 + sum_i w_i / (d_i - lambda), d ascending, w positive: between d_j and the next one.
inline Root find_root(View<const double> d, View<const double> w, int64_t j, double total,
                      const Kernels& kernels) {
  const bool last = j + 1 == d.size;
  const auto left_d = d.slice(0, j + 1), right_d = d.from(j + 1);
  const auto left_w = w.slice(0, j + 1), right_w = w.from(j + 1);
  double gap = last ? total : d[j + 1] - d[j], origin = d[j], low = 0, high = gap, x = gap / 2;
  for (int iteration = 0; iteration < 200; ++iteration) {
    const PoleSums left = kernels.pole_sums(left_d, left_w, origin, x);
    const PoleSums right = kernels.pole_sums(right_d, right_w, origin, x);
    const double f = 1 + left.value + right.value;
    (f < 0 ? low : high) = x;
    if (iteration == 0 && f < 0 && !last) {  // closer to the next pole: measure from there
      origin = d[j + 1];
      low = -gap / 2, high = 0, x = -gap / 2;
    }
    if (std::abs(f) <= 2 * std::numeric_limits<double>::epsilon() * (1 - left.value + right.value))
      break;
    // both sums as r + s / (pole - x) with their value and slope at x
    const double to_left = (d[j] - origin) - x, to_right = last ? 0 : (d[j + 1] - origin) - x;
    double step;
    if (last) {
      step = to_left + left.slope * to_left * to_left / (f - left.slope * to_left);
    } else {
      const double c = f - left.slope * to_left - right.slope * to_right;
      const double b = to_left * to_right * f;
      const double a = f * (to_left + to_right) - to_left * to_right * (left.slope + right.slope);
      const double root = std::sqrt(std::max(0.0, a * a - 4 * b * c));
      step = a > 0 ? 2 * b / (a + root) : (a - root) / (2 * c);
    }
    double to = x + step;
    if (!(to > low && to < high)) to = low + (high - low) / 2;
    if (to == x || to == low || to == high) break;
    x = to;
  }
  return {origin, x};
}

}  // namespace safecf
