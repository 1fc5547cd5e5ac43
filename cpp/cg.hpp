// Conjugate gradients for one row, in the eigenbasis of G.
#pragma once

#include "gather.hpp"

namespace {

// Minimises 1/2 x'Ax - b'x from x. With the preconditioner M = diag(A) this is spectral CG,
// without it plain CG, whose iterates do not depend on the basis.
template <class Value>
inline bool conjugate_gradients(const safecf::RowSystem& a, const safecf::CgOptions& options,
                                float* x, float* scratch) {
  const int64_t width = a.fixed.width;
  float* const b = scratch;
  float* const residual = b + width;
  float* const inverse = residual + width;  // of the preconditioner
  float* const step = inverse + width;
  float* const image = step + width;

  fill(b, 0.0f, width);
  for (int64_t i = 0; i < width; i += kLanes) {
    const Vec d = load(a.shared + i);
    store(residual + i, -d * load(x + i));
    store(inverse + i, d);
  }
  first_pass<Value>(a, x, b, residual, inverse);

  const float size = dot(b, b, width);
  if (size == 0.0f) {
    fill(x, 0.0f, width);
    return true;
  }
  if (!is_finite(size)) return false;
  // below the floor the squares of the residual are no longer normal numbers
  const float floor = 1e-34f, asked = options.tolerance * options.tolerance * size;
  const float goal = asked > floor ? asked : floor;
  for (int64_t i = 0; i < width; i += kLanes) {
    store(inverse + i, options.precondition ? 1.0f / load(inverse + i) : splat(1.0f));
    store(step + i, load(inverse + i) * load(residual + i));
  }
  float energy = dot(residual, step, width);
  for (int iteration = 0; iteration < options.max_iterations; ++iteration) {
    if (dot(residual, residual, width) <= goal) break;
    for (int64_t i = 0; i < width; i += kLanes)
      store(image + i, load(a.shared + i) * load(step + i));
    apply_pairs<Value>(a, step, 0.0f, image);
    const float curvature = dot(step, image, width);
    if (!(curvature > 0.0f)) return false;
    const float length = energy / curvature;
    axpy(length, step, x, width);
    axpy(-length, image, residual, width);
    Vec next = {};
    for (int64_t i = 0; i < width; i += kLanes) {
      const Vec r = load(residual + i);
      next += r * load(inverse + i) * r;
    }
    const float next_energy = sum(next);
    const float momentum = next_energy / energy;
    energy = next_energy;
    for (int64_t i = 0; i < width; i += kLanes)
      store(step + i, load(inverse + i) * load(residual + i) + momentum * load(step + i));
  }
  return is_finite(dot(x, x, width));
}

}  // namespace
