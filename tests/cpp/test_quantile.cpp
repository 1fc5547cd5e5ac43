// Smoothing kernels against the C library in long double, and sums against plain loops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "check.hpp"

namespace {

using namespace safecf;

constexpr Smoothing kAll[] = {Smoothing::kGaussian, Smoothing::kEpanechnikov, Smoothing::kLogistic,
                              Smoothing::kUniform, Smoothing::kTriangular};

// K(t), k(t) and E|t + Z|
struct Expected {
  long double cdf, density, absolute;
};

Expected expected(Smoothing kernel, long double t) {
  const long double x = std::abs(t), c = std::clamp(t, -1.0L, 1.0L), y = std::abs(c);
  switch (kernel) {
    case Smoothing::kGaussian: {
      const long double k = std::exp(-t * t / 2) / std::sqrt(2 * std::acos(-1.0L));
      return {std::erfc(-t / std::sqrt(2.0L)) / 2, k, 2 * k + t * std::erf(t / std::sqrt(2.0L))};
    }
    case Smoothing::kLogistic: {
      const long double e = std::exp(-x), above = 1 / (1 + e);
      return {t < 0 ? e * above : above, e * above * above, x + 2 * std::log1p(e)};
    }
    case Smoothing::kEpanechnikov:
      return {(1 + c) * (1 + c) * (2 - c) / 4, 3 * (1 - c * c) / 4,
              x > 1 ? x : (3 + 6 * c * c - c * c * c * c) / 8};
    case Smoothing::kUniform:
      return {(1 + c) / 2, x > 1 ? 0.0L : 0.5L, x > 1 ? x : (1 + c * c) / 2};
    default:
      return {c < 0 ? (1 + c) * (1 + c) / 2 : 1 - (1 - c) * (1 - c) / 2, 1 - y,
              x > 1 ? x : (1 + 3 * y * y - y * y * y) / 3};
  }
}

bool close(double found, long double wanted, long double tolerance) {
  return std::abs(found - wanted) <= tolerance * std::abs(wanted) + 1e-320L;
}

void test_kernels_are_accurate(const Execution& run) {
  std::vector<double> points{0.0, 1.0, -1.0, 1e-300, 5e-324, 1e-8, 1 + 0x1p-52, 39.0, -39.0};
  for (double t = -45.0; t < 45.0; t += 0.00377) points.push_back(t);
  for (double t = 1e-6; t < 1e4; t *= 1.01) points.insert(points.end(), {t, -t});
  for (const Smoothing kernel : kAll) {
    std::vector<double> weights(points.size());
    kernel_weights(in(points), {kernel, 1.0, 0.0, 0.0}, out(weights), run);
    for (size_t i = 0; i < points.size(); ++i) {
      const Expected wanted = expected(kernel, points[i]);
      CHECK(close(weights[i], wanted.cdf, 1e-14L));
      const Losses one{{&points[i], 1}, {}};
      const QuantileSums sums = quantile_sums(one, {kernel, 1.0, 0.5, 0.0}, run);
      CHECK(sums.weight == weights[i] && sums.distance == std::abs(points[i]));
      // the NumPy formula has no density beyond 39 either
      CHECK(std::abs(points[i]) > 38 || close(sums.density, wanted.density, 1e-14L));
      CHECK(close(sums.check, wanted.absolute / 2, 1e-14L));
    }
  }
}

void test_infinite_and_undefined_points(const Execution& run) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const Smoothing kernel : kAll) {
    const std::vector<double> points{infinity, -infinity, 1e308, -1e308, nan};
    std::vector<double> weights(5);
    kernel_weights(in(points), {kernel, 1.0, 0.0, 0.0}, out(weights), run);
    CHECK(weights[0] == 1 && weights[1] == 0 && weights[2] == 1 && weights[3] == 0);
    CHECK(std::isnan(weights[4]));
    // the bandwidth is so small that t is infinite: inf, not NaN, for every length of a block
    for (int64_t count = 1; count < 20; ++count) {
      const std::vector<double> far(count, 1e10);
      const QuantileSums sums = quantile_sums({in(far), {}}, {kernel, 1e-305, 0.3, 0.0}, run);
      CHECK(sums.weight == static_cast<double>(count) && sums.density == 0);
      CHECK(sums.check == infinity);
    }
  }
}

void test_sums_are_those_of_plain_loops(const Execution& run) {
  for (const int64_t count : {1, 7, 8, 9, 15, 16, 17, 4095, 4096, 4097, 20000}) {
    std::vector<double> losses(count), counts(count);
    for (int64_t i = 0; i < count; ++i) {
      losses[i] = std::sin(static_cast<double>(i)) + 0.5;
      counts[i] = 0.5 + static_cast<double>(i % 5);
    }
    for (const bool counted : {false, true}) {
      const Losses users{in(losses), counted ? in(counts) : View<const double>()};
      const LossSummary summary = loss_summary(users, run);
      long double size = 0, sum = 0;
      for (int64_t i = 0; i < count; ++i) {
        size += counted ? counts[i] : 1.0;
        sum += (counted ? counts[i] : 1.0) * losses[i];
      }
      CHECK(close(summary.size, size, 1e-14L) && close(summary.sum, sum, 1e-11L));
      CHECK(summary.low == *std::min_element(losses.begin(), losses.end()));
      CHECK(summary.high == *std::max_element(losses.begin(), losses.end()));
      for (const Smoothing kernel : kAll) {
        for (const double h : {1e-9, 0.2, 1e6}) {
          const double tail = 0.3, xi = 0.8;
          const QuantileSums sums = quantile_sums(users, {kernel, h, tail, xi}, run);
          long double weight = 0, density = 0, check = 0, distance = 0;
          for (int64_t i = 0; i < count; ++i) {
            const double c = counted ? counts[i] : 1.0, u = losses[i] - xi;
            const Expected at = expected(kernel, u / h);
            weight += c * at.cdf;
            density += c * at.density;
            check += c * (h / 2 * at.absolute + (0.5 - tail) * u);
            distance += c * std::abs(u);
          }
          CHECK(close(sums.weight, weight, 1e-13L) && close(sums.density, density, 1e-13L));
          CHECK(close(sums.check, check, 1e-13L) && close(sums.distance, distance, 1e-13L));
        }
      }
    }
  }
}

void test_bits_do_not_depend_on_the_threads(const Kernels& kernels) {
  std::vector<double> losses(30000);
  for (size_t i = 0; i < losses.size(); ++i) losses[i] = std::cos(static_cast<double>(i * i));
  const auto bits = [&](int threads) {
    std::vector<double> found;
    const Execution run{&kernels, threads};
    for (const Smoothing kernel : kAll) {
      const QuantileSums s = quantile_sums({in(losses), {}}, {kernel, 0.1, 0.3, 0.5}, run);
      found.insert(found.end(), {s.weight, s.density, s.check, s.distance});
    }
    found.push_back(loss_summary({in(losses), {}}, run).sum);
    return found;
  };
  CHECK(bits(1) == bits(2) && bits(1) == bits(3));
}

}  // namespace

int main() {
  for (const Kernels* kernels : available_kernels()) {
    test_kernels_are_accurate({kernels, 1});
    test_infinite_and_undefined_points({kernels, 1});
    test_sums_are_those_of_plain_loops({kernels, 2});
    test_bits_do_not_depend_on_the_threads(*kernels);
  }
  std::puts("all tests of the quantile step passed");
}
