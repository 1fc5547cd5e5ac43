// Bindings of the quantile step.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <iterator>
#include <string>
#include <tuple>

#include "arrays.hpp"

using namespace nb::literals;

namespace safecf::python {
namespace {

// In the order of `Smoothing`.
constexpr const char* kNames[] = {"gaussian", "epanechnikov", "logistic", "uniform", "triangular"};

Smoothing smoothing_named(const std::string& name) {
  std::string known;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<Smoothing>(i);
    known += std::string(i == 0 ? "'" : ", '") + kNames[i] + "'";
  }
  throw std::invalid_argument("there is no native kernel '" + name + "'; there are " + known);
}

QuantilePoint point_at(const std::string& kernel, double bandwidth, double tail, double xi) {
  return {smoothing_named(kernel), bandwidth, tail, xi};
}

Losses losses_of(const In1<double>& losses, const std::optional<In1<double>>& counts) {
  return {view(losses), view(counts)};
}

using Four = std::tuple<double, double, double, double>;

Four loss_summary(const In1<double>& losses, const std::optional<In1<double>>& counts,
                  const Execution& execution) {
  const Losses users = losses_of(losses, counts);
  const auto [size, sum, low, high] =
      without_gil([&] { return safecf::loss_summary(users, execution); });
  return {size, sum, low, high};
}

Four quantile_sums(const In1<double>& losses, const std::optional<In1<double>>& counts,
                   const std::string& kernel, double bandwidth, double tail, double xi,
                   const Execution& execution) {
  const Losses users = losses_of(losses, counts);
  const QuantilePoint point = point_at(kernel, bandwidth, tail, xi);
  const auto [weight, density, check, distance] =
      without_gil([&] { return safecf::quantile_sums(users, point, execution); });
  return {weight, density, check, distance};
}

void kernel_weights(const In1<double>& losses, const std::string& kernel, double bandwidth,
                    double xi, const Out1<double>& out, const Execution& execution) {
  const QuantilePoint point = point_at(kernel, bandwidth, 0.0, xi);
  without_gil([&] { safecf::kernel_weights(view(losses), point, out_view(out), execution); });
}

}  // namespace

void bind_quantile(nb::module_& m) {
  nb::list names;
  for (const char* const name : kNames) names.append(name);
  m.attr("kernels") = nb::tuple(names);
  m.def("loss_summary", loss_summary, "losses"_a, "counts"_a.none(), "execution"_a,
        "sum_u c_u, sum_u c_u loss_u, the smallest and the largest loss; counts c None are ones.");
  m.def("quantile_sums", quantile_sums, "losses"_a, "counts"_a.none(), "kernel"_a, "bandwidth"_a,
        "tail"_a, "xi"_a, "execution"_a,
        "With u = loss - xi and t = u / h: sum c K(t), sum c k(t), the sum of the smoothed check\n"
        "function c [h/2 E|t + Z| + (1/2 - tail) u], Z ~ k, and sum c |u|.");
  m.def("kernel_weights", kernel_weights, "losses"_a, "kernel"_a, "bandwidth"_a, "xi"_a,
        "out"_a.noconvert(), "execution"_a, "Write K((loss - xi) / h) of every loss.");
}

}  // namespace safecf::python
