// A right operand of products, packed once and read by all threads.
#pragma once

#include "aligned.hpp"
#include "core.hpp"

namespace safecf {

class Packed {
 public:
  Packed(const Kernels& kernels, const Execution& execution, Strided b, int64_t depth,
         int64_t columns)
      : depth_(depth), columns_(columns), data_(kernels.packed_size(depth, columns)) {
    constexpr int64_t kPanels = 16;  // per task
    const int64_t panels = (columns + kernels.panel - 1) / kernels.panel;
    parallel_for((panels + kPanels - 1) / kPanels, execution, [] { return 0; },
                 [&](int64_t task, int) {
                   const int64_t last = std::min(panels, (task + 1) * kPanels);
                   kernels.pack(b, depth, columns, nullptr, task * kPanels, last, data_.data());
                 });
  }

  // C (rows x [first, last)) = A B
  void multiply(const Kernels& kernels, Strided a, int64_t rows, int64_t first, int64_t last,
                float* c, int64_t c_row, float* scratch) const {
    kernels.multiply(a, rows, depth_, data_.data(), columns_, first, last, Write::kSet, c, c_row,
                     scratch);
  }

 private:
  int64_t depth_, columns_;
  Buffer data_;
};

}  // namespace safecf
