// Conjugate gradients for one row, in the eigenbasis of G.
#pragma once

#include "gather.hpp"

namespace {

// The start is stretched by up to this much: beyond, rounding of its image would count.
constexpr float kMostStretch = 8.0f;

inline int64_t cg_scratch(int64_t width) { return 7 * safecf::scratch<float>(width); }

// Minimises 1/2 x'Ax - b'x from x. With the preconditioner M = diag(A) this is spectral CG,
// without it plain CG, whose iterates do not depend on the basis.
//
// Spectral CG takes its start x0, whose image A x0 = b - residual it has already, for a first
// direction: the minimum along it is its start, and all steps are conjugate to it. That saves half
// an iteration or more.
template <class Value, bool kPrecondition>
inline bool conjugate_gradients(const safecf::RowSystem& a, const safecf::SolverOptions& options,
                                View<float> x, safecf::Arena arena) {
  const int64_t width = x.size;
  const auto b = arena.take<float>(width), residual = arena.take<float>(width);
  const auto inverse = arena.take<float>(width);  // of the preconditioner
  const auto step = arena.take<float>(width), image = arena.take<float>(width);
  const auto start = arena.take<float>(width), start_image = arena.take<float>(width);

  fill(b, 0.0f);
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vec d = load(a.shared, i);
    store(residual, i, -d * load(x, i));
    store(inverse, i, d);
  }
  first_pass<Value>(a, x, b, residual, inverse);

  const float size = dot(b, b);
  if (size == 0.0f) {
    fill(x, 0.0f);
    return true;
  }
  if (!is_finite(size)) return false;
  // below the floor squares are no longer normal numbers: of the residual, and over the shared part
  const float floor = 1e-34f, relative = options.tolerance * options.tolerance * size;
  const float goal = relative > floor ? relative : floor;
  if (dot(residual, residual) <= goal) return is_finite(dot(x, x));
  float per_energy = 0.0f;  // 1 / x0'Ax0; zero where the start is no use
  if constexpr (kPrecondition) {
    for (int64_t i = 0; i < width; i += kLanes) {
      store(start, i, load(x, i));
      store(start_image, i, load(b, i) - load(residual, i));
    }
    const float start_energy = dot(start, start_image);
    const float stretch = dot(b, start) / start_energy;
    if (start_energy > floor && stretch >= -kMostStretch && stretch <= kMostStretch) {
      per_energy = 1.0f / start_energy;
      for (int64_t i = 0; i < width; i += kLanes) {
        store(x, i, stretch * load(start, i));
        store(residual, i, load(b, i) - stretch * load(start_image, i));
      }
    }
  }
  // r'M^-1 r and x0'AM^-1 r / x0'Ax0
  struct Products {
    float energy, along;
  };
  const auto products = [&]() SAFECF_ALWAYS {
    Vec energy = {}, along = {};
    for (int64_t i = 0; i < width; i += kLanes) {
      const Vec scaled = load(inverse, i) * load(residual, i);
      energy += load(residual, i) * scaled;
      if constexpr (kPrecondition) along += load(start_image, i) * scaled;
    }
    return Products{sum(energy), kPrecondition ? per_energy * sum(along) : 0.0f};
  };
  // step = M^-1 r - along x0 + momentum step
  const auto turn = [&](float along, float momentum) SAFECF_ALWAYS {
    for (int64_t i = 0; i < width; i += kLanes) {
      Vec next = load(inverse, i) * load(residual, i) + momentum * load(step, i);
      if constexpr (kPrecondition) next -= along * load(start, i);
      store(step, i, next);
    }
  };
  for (int64_t i = 0; i < width; i += kLanes)
    store(inverse, i, kPrecondition ? 1.0f / load(inverse, i) : splat(1.0f));
  fill(step, 0.0f);
  Products now = products();
  turn(now.along, 0.0f);
  for (int iteration = 0; iteration < options.max_iterations; ++iteration) {
    const float slope = dot(residual, step);  // r'M^-1 r, up to rounding
    if (dot(residual, residual) <= goal || slope <= floor) break;
    for (int64_t i = 0; i < width; i += kLanes) store(image, i, load(a.shared, i) * load(step, i));
    apply_pairs<Value>(a, step, 0.0f, image);
    const float curvature = dot(step, image);
    if (!(curvature > 0.0f)) return false;
    const float length = slope / curvature;
    axpy(length, step, x);
    axpy(-length, image, residual);
    const Products next = products();
    turn(next.along, next.energy / now.energy);
    now = next;
  }
  return is_finite(dot(x, x));
}

template <bool kPrecondition>
bool cg(const safecf::RowSystem& a, const safecf::SolverOptions& options, View<float> x,
        safecf::Arena arena) {
  const ZeroSubnormals here;
  return a.fixed.bfloat16 ? conjugate_gradients<uint32_t, kPrecondition>(a, options, x, arena)
                          : conjugate_gradients<float, kPrecondition>(a, options, x, arena);
}

}  // namespace
