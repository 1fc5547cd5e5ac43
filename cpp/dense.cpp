// Gramians and rotations of whole factor matrices.
#include <algorithm>

#include "packed.hpp"

namespace safecf {
namespace {
constexpr int64_t kGramRows = 1024;       // at least, per partial sum
constexpr int64_t kGramFloats = 1 << 26;  // at most, in all partial sums
constexpr int64_t kTaskRows = 192;        // per task of the others

// The rows are cut into parts by their number and the size of a Gramian alone, and the partial
// Gramians are added in order: the same bits for every number of threads.
struct Parts {
  int64_t rows, count, share;

  Parts(int64_t rows, int64_t floats)
      : rows(rows),
        count(std::clamp<int64_t>(rows / kGramRows, 1,
                                  std::clamp<int64_t>(kGramFloats / floats, 2, 32))),
        share((rows + count - 1) / count) {}
  int64_t first(int64_t part) const { return std::min(rows, part * share); }
  int64_t last(int64_t part) const { return std::min(rows, (part + 1) * share); }
};

}  // namespace

void gram(const Kernels& kernels, const Execution& execution, const float* rows, int64_t count,
          int64_t factors, const float* weight, float* gram) {
  const int64_t d = factors, square = d * d;
  const Parts parts(count, square);
  Buffer partial(parts.count * square, 0.0f);
  parallel_for(
      parts.count, execution, [&] { return Buffer(kernels.gram_scratch(d)); },
      [&](int64_t part, Buffer& scratch) {
        const int64_t first = parts.first(part), last = parts.last(part);
        kernels.gram({rows + first * d, 1, d}, d, last - first, weight ? weight + first : nullptr,
                     Write::kAdd, partial.data() + part * square, d, scratch.data());
      });
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double total = 0;
      for (int64_t part = 0; part < parts.count; ++part)
        total += partial[part * square + i * d + j];
      gram[i * d + j] = gram[j * d + i] = static_cast<float>(total);
    }
  }
}

void gram_block(const Kernels& kernels, const Execution& execution, const float* rows,
                int64_t count, int64_t factors, const float* weight, int64_t first, int64_t size,
                float* gram) {
  const int64_t d = factors, area = d * size;
  const Parts parts(count, area);
  Buffer partial(parts.count * area, 0.0f);
  struct Scratch {
    Buffer packed, product;
  };
  const auto make_scratch = [&] {
    return Scratch{Buffer(kernels.packed_size(kGramRows, size)), Buffer(kernels.multiply_scratch)};
  };
  parallel_for(parts.count, execution, make_scratch, [&](int64_t part, Scratch& scratch) {
    for (int64_t row = parts.first(part); row < parts.last(part); row += kGramRows) {
      const int64_t depth = std::min(kGramRows, parts.last(part) - row);
      const float* const from = rows + row * d;
      kernels.pack({from + first, d, 1}, depth, size, weight ? weight + row : nullptr, 0,
                   (size + kernels.panel - 1) / kernels.panel, scratch.packed.data());
      kernels.multiply({from, 1, d}, d, depth, scratch.packed.data(), size, 0, size, Write::kAdd,
                       partial.data() + part * area, size, scratch.product.data());
    }
  });
  for (int64_t i = 0; i < area; ++i) {
    double total = 0;
    for (int64_t part = 0; part < parts.count; ++part) total += partial[part * area + i];
    gram[i] = static_cast<float>(total);
  }
}

void rotate(const Kernels& kernels, const Execution& execution, const float* rows, int64_t count,
            int64_t factors, int64_t first, int64_t size, const float* basis, float* out,
            int64_t width) {
  const Packed packed(kernels, execution, {basis, size, 1}, size, size);
  struct Scratch {
    Buffer product, block;
  };
  const auto make_scratch = [&] {
    return Scratch{Buffer(kernels.multiply_scratch), Buffer(kTaskRows * width, 0.0f)};
  };
  parallel_for((count + kTaskRows - 1) / kTaskRows, execution, make_scratch,
               [&](int64_t task, Scratch& scratch) {
                 const int64_t begin = task * kTaskRows, tall = std::min(count - begin, kTaskRows);
                 packed.multiply(kernels, {rows + begin * factors + first, factors, 1}, tall, 0,
                                 size, scratch.block.data(), width, scratch.product.data());
                 std::copy_n(scratch.block.data(), tall * width, out + begin * width);
               });
}

void roughen(const Kernels& kernels, const Execution& execution, const float* rows, int64_t count,
             int64_t factors, uint32_t* rough) {
  const int64_t width = rough_width(factors);
  parallel_for((count + kTaskRows - 1) / kTaskRows, execution, [&] { return Buffer(width, 0.0f); },
               [&](int64_t task, Buffer& padded) {
                 const int64_t last = std::min(count, (task + 1) * kTaskRows);
                 for (int64_t row = task * kTaskRows; row < last; ++row) {
                   std::copy_n(rows + row * factors, factors, padded.data());
                   kernels.to_rough(padded.data(), width, rough + row * (width / 2));
                 }
               });
}

}  // namespace safecf
