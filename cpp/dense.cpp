// Gramians and rotations of whole factor matrices.
#include <algorithm>

#include "checks.hpp"
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
  int64_t size(int64_t part) const { return first(part + 1) - first(part); }
};

View<const float> slice_or_none(View<const float> weight, int64_t first, int64_t count) {
  return weight ? weight.slice(first, count) : weight;
}

int64_t tasks_of(int64_t rows) { return (rows + kTaskRows - 1) / kTaskRows; }

const Products& products_of(const Execution& execution, bool rough) {
  return rough ? execution.kernels->rough_products : execution.kernels->products;
}

// Partial sums of a matrix, to be added in order.
class PartialSums {
 public:
  PartialSums(int64_t parts, int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), parts_(parts), sums_(parts * rows * columns, 0.0f) {}

  MatrixView<float> operator[](int64_t part) {
    return {sums_.data() + part * rows_ * columns_, rows_, columns_};
  }

  // Calls write(i, j, sum) for all elements, or for those of the lower triangle.
  template <class Write>
  void add(bool lower, const Execution& execution, const Write& write) {
    parallel_for(rows_, scratch<double>(columns_), execution, [&](int64_t i, Arena arena) {
      const int64_t count = lower ? i + 1 : columns_;
      const auto total = arena.take<double>(count);
      std::fill(total.begin(), total.end(), 0.0);
      for (int64_t part = 0; part < parts_; ++part) {
        const auto row = (*this)[part].row(i);
        for (int64_t j = 0; j < count; ++j) total[j] += row[j];
      }
      for (int64_t j = 0; j < count; ++j) write(i, j, static_cast<float>(total[j]));
    });
  }

 private:
  int64_t rows_, columns_, parts_;
  Buffer<float> sums_;
};

}  // namespace

void gram(MatrixView<const float> factors, View<const float> weight, MatrixView<float> gram,
          const Execution& execution, bool rough) {
  const int64_t d = factors.columns;
  check_factors(d);
  require(gram.rows == d && gram.columns == d, "gram is not factors x factors");
  require(!weight || weight.size == factors.rows, "one weight per row is needed");
  check_apart({gram}, {factors, weight});
  const Products& products = products_of(execution, rough);
  const Parts parts(factors.rows, d * d);
  PartialSums sums(parts.count, d, d);
  parallel_for(parts.count, products.gram_scratch(d), execution, [&](int64_t part, Arena arena) {
    const int64_t first = parts.first(part), count = parts.size(part);
    products.gram(Operand(factors.rows_from(first, count)).transposed(),
                  slice_or_none(weight, first, count), Write::kAdd, sums[part], arena);
  });
  sums.add(true, execution,
           [&](int64_t i, int64_t j, float sum) { gram(i, j) = gram(j, i) = sum; });
}

void gram_block(MatrixView<const float> factors, View<const float> weight, int64_t first,
                MatrixView<float> gram, const Execution& execution) {
  const int64_t d = factors.columns, size = gram.columns;
  check_factors(d);
  require(gram.rows == d && size >= 1, "gram is not factors x block");
  check_block(first, size, d);
  require(!weight || weight.size == factors.rows, "one weight per row is needed");
  check_apart({gram}, {factors, weight});
  const Products& products = execution.kernels->products;
  const Parts parts(factors.rows, d * size);
  PartialSums sums(parts.count, d, size);
  const int64_t needed =
      scratch<float>(products.packed_size(kGramRows, size)) + products.multiply_scratch;
  parallel_for(parts.count, needed, execution, [&](int64_t part, Arena arena) {
    const auto room = arena.take<float>(products.packed_size(kGramRows, size));
    const int64_t end = parts.first(part + 1);
    for (int64_t row = parts.first(part); row < end; row += kGramRows) {
      const int64_t depth = std::min(kGramRows, end - row);
      const auto rows = factors.rows_from(row, depth);
      const auto packed = room.slice(0, products.packed_size(depth, size));
      products.pack(rows.columns_from(first, size), slice_or_none(weight, row, depth), 0,
                    (size + products.panel - 1) / products.panel, packed);
      products.multiply(Operand(rows).transposed(), {packed.data, depth, size}, 0, Write::kAdd,
                        sums[part], arena);
    }
  });
  sums.add(false, execution, [&](int64_t i, int64_t j, float sum) { gram(i, j) = sum; });
}

void rotate(MatrixView<const float> factors, int64_t first, MatrixView<const float> basis,
            MatrixView<float> rotated, const Execution& execution, bool rough) {
  const int64_t size = basis.rows, width = rotated.columns;
  check_factors(size);
  check_factors(width);
  require(basis.columns == size, "basis is not square");
  check_block(first, size, factors.columns);
  require(rotated.rows == factors.rows && size <= width, "rotated has not the rows of the factors");
  const bool in_place = rotated.data == factors.data;
  require(!in_place || (size == factors.columns && width == size),
          "a block is not rotated in place");
  check_apart({rotated}, {basis, in_place ? MatrixView<const float>() : factors});
  const Packed packed(basis, products_of(execution, rough), execution);
  const int64_t needed = scratch<float>(kTaskRows * width) + packed.scratch();
  parallel_for(tasks_of(factors.rows), needed, execution, [&](int64_t task, Arena arena) {
    const int64_t begin = task * kTaskRows, count = std::min(factors.rows - begin, kTaskRows);
    const auto block = arena.take<float>(kTaskRows, width).rows_from(0, count);
    packed.multiply(factors.rows_from(begin, count).columns_from(first, size),
                    block.columns_from(0, size), arena);
    pad(block, size);
    copy(block, rotated.rows_from(begin, count));
  });
}

void to_bfloat16(MatrixView<const float> factors, MatrixView<uint32_t> words,
                 const Execution& execution) {
  check_factors(factors.columns);
  const int64_t width = 2 * words.columns;
  require(words.rows == factors.rows && width == bfloat16_width(factors.columns),
          "rows of words are not padded");
  check_apart({words}, {factors});
  const auto convert = [&](int64_t task, Arena arena) {
    const auto padded = arena.take<float>(width);
    const int64_t last = std::min(factors.rows, (task + 1) * kTaskRows);
    for (int64_t row = task * kTaskRows; row < last; ++row) {
      copy_padded(factors.row(row), padded);
      execution.kernels->to_bfloat16(padded, words.row(row));
    }
  };
  parallel_for(tasks_of(factors.rows), scratch<float>(width), execution, convert);
}

}  // namespace safecf
