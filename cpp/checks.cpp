#include "checks.hpp"

#include <string>

namespace safecf {

void check_factors(int64_t factors) {
  require(factors >= 1, "there are no factors");
  if (factors > kMostFactors)
    throw std::invalid_argument(std::to_string(factors) + " factors are too many: at most " +
                                std::to_string(kMostFactors));
}

void check_block(int64_t first, int64_t size, int64_t factors) {
  require(0 <= first && 0 <= size && size <= factors && first <= factors - size,
          "the block is not among the factors");
}

void check(const Csr& matrix) {
  require(matrix.offsets.size >= 1, "indptr is empty");
  require(!matrix.weights || matrix.weights.size == matrix.columns.size,
          "weights and indices differ in length");
}

void check_offsets(const Csr& matrix) {
  int64_t before = read_once(matrix.offsets[0]);
  require(before == 0, "indptr does not start at 0");
  for (int64_t row = 1; row < matrix.offsets.size; ++row) {
    const int64_t offset = read_once(matrix.offsets[row]);
    require(before <= offset, "indptr decreases");
    before = offset;
  }
  require(before == matrix.columns.size, "indptr does not end at the number of indices");
}

void check(const Fixed& fixed) {
  const int64_t d = fixed.factors();
  check_factors(d);
  require(fixed.rotated.width() == (fixed.rotated.bfloat16 ? bfloat16_width(d) : padded_width(d)),
          "rotated rows are not padded");
  require(!fixed.basis || (fixed.basis.rows == d && fixed.basis.columns == d),
          "basis is not factors x factors");
}

void check(const Rows& rows) {
  check(rows.matrix);
  const int64_t count = rows.matrix.rows();
  require(
      rows.row_weight.size == count && rows.gram_weight.size == count && rows.ridge.size == count,
      "one weight and one ridge per row are needed");
}

void check(const Report& report) {
  require(report.change.size == report.norm.size, "change and norm differ in length");
}

void check(const Report& report, int64_t rows) {
  check(report);
  require(report.change.size == rows, "one change and norm per row are needed");
}

void check_losses(int64_t rows, View<const float> pair_weight, View<const float> ridge,
                  MatrixView<const float> factors, View<const float> losses) {
  require(pair_weight.size == rows && losses.size == rows && factors.rows == rows &&
              (!ridge || ridge.size == rows),
          "one weight, loss and row of factors per row of the matrix is needed");
}

void check(const Rows& rows, const Fixed& fixed, MatrixView<const float> factors) {
  check(rows);
  check(fixed);
  require(rows.col_weight.size == fixed.rotated.rows(),
          "one column weight per fixed row is needed");
  require(factors.rows == rows.matrix.rows(), "one row of factors per row of the matrix is needed");
  require(factors.columns == fixed.factors(), "factors differ from the fixed side's");
}

Arrays::Arrays(const Csr& matrix) : Arrays(matrix.offsets) {
  add(matrix.columns);
  add(matrix.weights);
}

Arrays::Arrays(const Rows& rows) : Arrays(rows.matrix) {
  for (const auto& weight : {rows.row_weight, rows.col_weight, rows.gram_weight, rows.ridge})
    add(weight);
}

Arrays::Arrays(const Fixed& fixed) : Arrays(fixed.values) {
  add(fixed.rotated.float32);
  add(fixed.rotated.bfloat16);
  add(fixed.basis);
}

Arrays::Arrays(const Report& report) : Arrays(report.change) { add(report.norm); }

void Arrays::add(const void* data, int64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  if (bytes > 0) push_back({begin, begin + static_cast<uintptr_t>(bytes)});
}

void check_apart(std::initializer_list<Arrays> outputs, std::initializer_list<Arrays> inputs) {
  std::vector<Memory> others;
  for (const Arrays& input : inputs) others.insert(others.end(), input.begin(), input.end());
  for (const Arrays& output : outputs) {
    for (const Memory& mine : output) {
      for (const Memory& other : others)
        require(mine.end <= other.begin || other.end <= mine.begin,
                "an output overlaps another array: give each output memory of its own");
      others.push_back(mine);
    }
  }
}

}  // namespace safecf
