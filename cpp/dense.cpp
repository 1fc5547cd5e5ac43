// Gramians and rotations of whole factor matrices.
#include <algorithm>

#include "packed.hpp"

namespace safecf {
namespace {
constexpr int64_t kGramRows = 1024;       // at least, per partial sum
constexpr int64_t kGramFloats = 1 << 26;  // at most, in all partial sums
constexpr int64_t kRotatedRows = 192;     // per task
}  // namespace

// The rows are cut into parts by their number and that of the factors alone, and the partial
// Gramians are added in order: the same bits for every number of threads.
void gram(const Kernels& kernels, const Execution& execution, const float* rows, int64_t count,
          int64_t factors, const float* weight, float* gram) {
  const int64_t d = factors, square = d * d;
  const int64_t fit = std::clamp<int64_t>(kGramFloats / square, 2, 32);
  const int64_t parts = std::clamp<int64_t>(count / kGramRows, 1, fit);
  const int64_t share = (count + parts - 1) / parts;
  Buffer partial(parts * square, 0.0f);
  parallel_for(
      parts, execution, [&] { return Buffer(kernels.gram_scratch(d)); },
      [&](int64_t part, Buffer& scratch) {
        const int64_t first = std::min(count, part * share), last = std::min(count, first + share);
        kernels.gram({rows + first * d, 1, d}, d, last - first, weight ? weight + first : nullptr,
                     Write::kAdd, partial.data() + part * square, d, scratch.data());
      });
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double total = 0;
      for (int64_t part = 0; part < parts; ++part) total += partial[part * square + i * d + j];
      gram[i * d + j] = gram[j * d + i] = static_cast<float>(total);
    }
  }
}

void rotate(const Kernels& kernels, const Execution& execution, const float* rows, int64_t count,
            int64_t factors, const float* basis, float* rotated) {
  const int64_t d = factors, width = padded_width(d);
  const Packed packed(kernels, execution, {basis, d, 1}, d, d);
  parallel_for((count + kRotatedRows - 1) / kRotatedRows, execution,
               [&] { return Buffer(kernels.multiply_scratch); },
               [&](int64_t task, Buffer& scratch) {
                 const int64_t first = task * kRotatedRows;
                 const int64_t last = std::min(count, first + kRotatedRows);
                 float* const out = rotated + first * width;
                 packed.multiply(kernels, {rows + first * d, d, 1}, last - first, 0, d, out, width,
                                 scratch.data());
                 for (int64_t row = 0; row < last - first; ++row)
                   std::fill(out + row * width + d, out + (row + 1) * width, 0.0f);
               });
}

}  // namespace safecf
