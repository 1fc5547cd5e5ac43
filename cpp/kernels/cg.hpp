// Conjugate gradients for one row, in the eigenbasis of G.
#pragma once

#include "gather.hpp"

namespace {

inline int64_t cg_scratch(int64_t width) { return 5 * safecf::scratch<float>(width); }

// Minimises 1/2 x'Ax - b'x from x. With the preconditioner M = diag(A) this is spectral CG,
// without it plain CG, whose iterates do not depend on the basis.
template <class Value, bool kPrecondition>
inline bool conjugate_gradients(const safecf::RowSystem& a, const safecf::SolverOptions& options,
                                View<float> x, safecf::Arena arena) {
  const int64_t width = x.size;
  const auto b = arena.take<float>(width), residual = arena.take<float>(width);
  const auto inverse = arena.take<float>(width);  // of the preconditioner
  const auto step = arena.take<float>(width), image = arena.take<float>(width);

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
  for (int64_t i = 0; i < width; i += kLanes) {
    store(inverse, i, kPrecondition ? 1.0f / load(inverse, i) : splat(1.0f));
    store(step, i, load(inverse, i) * load(residual, i));
  }
  float energy = dot(residual, step);
  for (int iteration = 0; iteration < options.max_iterations; ++iteration) {
    if (dot(residual, residual) <= goal || energy <= floor) break;
    for (int64_t i = 0; i < width; i += kLanes) store(image, i, load(a.shared, i) * load(step, i));
    apply_pairs<Value>(a, step, 0.0f, image);
    const float curvature = dot(step, image);
    if (!(curvature > 0.0f)) return false;
    const float length = energy / curvature;
    axpy(length, step, x);
    axpy(-length, image, residual);
    Vec next = {};
    for (int64_t i = 0; i < width; i += kLanes) {
      const Vec r = load(residual, i);
      next += r * load(inverse, i) * r;
    }
    const float next_energy = sum(next);
    const float momentum = next_energy / energy;
    energy = next_energy;
    for (int64_t i = 0; i < width; i += kLanes)
      store(step, i, load(inverse, i) * load(residual, i) + momentum * load(step, i));
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
