// A right operand of products, packed once and read by all threads.
#pragma once

#include <algorithm>

#include "core.hpp"
#include "memory.hpp"

namespace safecf {

class Packed {
 public:
  Packed(Operand b, const Execution& execution)
      : Packed(b, execution.kernels->products, execution) {}
  Packed(Operand b, const Products& products, const Execution& execution)
      : products_(products),
        depth_(b.rows),
        columns_(b.columns),
        data_(static_cast<size_t>(products.packed_size(b.rows, b.columns))) {
    constexpr int64_t kPanels = 16;  // per task
    const int64_t panels = (b.columns + products.panel - 1) / products.panel;
    parallel_for((panels + kPanels - 1) / kPanels, execution, [&](int64_t task) {
      const int64_t last = std::min(panels, (task + 1) * kPanels);
      products.pack(b, {}, task * kPanels, last, {data_.data(), bytes() / 4});
    });
  }

  // C = A B's columns from `first` on, a multiple of the panels'.
  void multiply(Operand a, int64_t first, MatrixView<float> c, Arena arena) const {
    products_.multiply(a, {data_.data(), depth_, columns_}, first, Write::kSet, c, arena);
  }
  // C = A B
  void multiply(Operand a, MatrixView<float> c, Arena arena) const { multiply(a, 0, c, arena); }

  int64_t scratch() const { return products_.multiply_scratch; }
  int64_t bytes() const { return static_cast<int64_t>(data_.size() * sizeof(float)); }

 private:
  const Products& products_;
  int64_t depth_, columns_;
  Buffer<float> data_;
};

}  // namespace safecf
