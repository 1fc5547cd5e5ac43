// Reduction of a symmetric matrix to tridiagonal form by reflections, a panel of rows at a time.
#include "tridiagonal.hpp"

#include <algorithm>
#include <cmath>

#include "phases.hpp"

namespace safecf {
namespace {

// All sizes are fixed, so that sums have the same order for any number of threads.
constexpr int64_t kPanel = 32;     // reflections between two updates of the rest
constexpr int64_t kStrip = 64;     // rows per task of a product A v
constexpr int64_t kChunk = 256;    // coordinates per task of the sums over a panel
constexpr int64_t kTile = 128;     // rows and columns per task of an update
constexpr int64_t kBlock = 48;     // reflections that are applied together
constexpr int64_t kVectors = 48;   // rows per task, to which they are applied
constexpr int64_t kApplied = 512;  // columns of them at a time

// Squared sizes of rows below this are zero to the matrix's rounding, by far.
constexpr double kTiny = 1e-280;

int64_t parts(int64_t size, int64_t part) { return (size + part - 1) / part; }

}  // namespace

// Rows [base, first]: A - V'W - W'V is the matrix reduced so far, v_k in row k of A, w_k in row
// k - base of W, and W's rows follow from
//   p = (A - V'W - W'V) v ,  w = tau p - tau^2/2 (p.v) v .
class Reduction::Panel {
 public:
  Panel(Reduction& to, int64_t first, MatrixView<double> w, MatrixView<double> products)
      : to_(to),
        a_(to.a_),
        w_(w),
        products_(products),
        base_(std::max<int64_t>(1, first - kPanel + 1)),
        first_(first),
        k_(first),
        sums_(static_cast<size_t>(parts(first + 1, kChunk) * kSums)),
        v_dots_(kPanel),
        w_dots_(kPanel) {}

  int64_t base() const { return base_; }

  void reduce(Phases& phases, const Execution& execution) {
    const Kernels& kernels = *execution.kernels;
    phases.run(
        parts(k_ + 1, kChunk), execution,
        [&](int64_t task) {
          step_ == Step::kRow       ? row(task, kernels)
          : step_ == Step::kProduct ? product(task, kernels)
                                    : collect(task, kernels);
        },
        [&] { return next(); });
  }

 private:
  enum class Step { kRow, kProduct, kCollect };
  static constexpr int64_t kSums = 2 * kPanel + 1;

  int64_t done() const { return first_ - k_; }
  MatrixView<double> sums() { return {sums_.data(), parts(k_ + 1, kChunk), kSums}; }
  // The reflections before row k, at the coordinates [begin, end).
  MatrixView<const double> v(int64_t begin, int64_t end) const {
    return a_.rows_from(k_ + 1, done()).columns_from(begin, end - begin);
  }
  MatrixView<const double> w(int64_t begin, int64_t end) const {
    return w_.rows_from(k_ + 1 - base_, done()).columns_from(begin, end - begin);
  }

  // Brings row k up to date; sums over its first k numbers: V x, W x and all but one of x.x.
  void row(int64_t task, const Kernels& kernels) {
    const int64_t begin = task * kChunk, end = std::min(begin + kChunk, k_ + 1);
    const int64_t before = std::min(end, k_), most = std::min(end, k_ - 1);
    double v_k[kPanel], w_k[kPanel];
    for (int64_t r = 0; r < done(); ++r)
      v_k[r] = a_(k_ + 1 + r, k_), w_k[r] = w_(k_ + 1 + r - base_, k_);
    const View<double> x = a_.row(k_).slice(begin, end - begin);
    kernels.subtract_rows(w(begin, end), {v_k, done()}, x);
    kernels.subtract_rows(v(begin, end), {w_k, done()}, x);
    const View<double> out = sums().row(task);
    const View<const double> inner = x.slice(0, before - begin);
    kernels.row_products(v(begin, before), inner, out.slice(0, done()));
    kernels.row_products(w(begin, before), inner, out.slice(kPanel, done()));
    const int64_t count = std::max<int64_t>(0, most - begin);
    kernels.row_products({x.data, 1, count}, x.slice(0, count), out.slice(2 * kPanel, 1));
  }

  // v and tau from the row: H x = (0, ..., 0, beta).
  void reflect() {
    const MatrixView<double> all = sums();
    double squares = 0;
    for (int64_t task = 0; task < all.rows; ++task) squares += all(task, 2 * kPanel);
    const View<double> x = a_.row(k_);
    const double alpha = x[k_ - 1], norm = std::sqrt(alpha * alpha + squares);
    const bool reflects = squares > kTiny;
    const double beta = reflects ? (alpha > 0 ? -norm : norm) : alpha;
    const double scale = reflects ? 1 / (alpha - beta) : 0;
    tau_ = reflects ? (beta - alpha) / beta : 0;
    to_.diagonal[k_] = x[k_];
    to_.off_diagonal[k_ - 1] = beta;
    to_.tau_[k_] = tau_;
    for (int64_t r = 0; r < done(); ++r) {
      double v_sum = 0, w_sum = 0;
      for (int64_t task = 0; task < all.rows; ++task) {
        v_sum += all(task, r);
        w_sum += all(task, kPanel + r);
      }
      v_dots_[r] = scale * (v_sum - beta * a_(k_ + 1 + r, k_ - 1));
      w_dots_[r] = scale * (w_sum - beta * w_(k_ + 1 + r - base_, k_ - 1));
    }
    for (int64_t i = 0; i < k_ - 1; ++i) x.data[i] *= scale;
    x[k_ - 1] = 1;
  }

  void product(int64_t task, const Kernels& kernels) {
    const int64_t begin = task * kStrip, end = std::min(begin + kStrip, k_);
    const View<double> out = products_.row(task).slice(0, end);
    std::fill(out.begin(), out.end(), 0.0);
    kernels.symmetric_product(a_, begin, end, a_.row(k_).slice(0, end), out);
  }

  void collect(int64_t task, const Kernels& kernels) {
    const int64_t begin = task * kChunk, end = std::min(begin + kChunk, k_);
    const View<double> p = w_.row(k_ - base_).slice(begin, end - begin);
    std::fill(p.begin(), p.end(), 0.0);
    for (int64_t strip = begin / kStrip; strip < parts(k_, kStrip); ++strip) {
      const int64_t count = std::min({end, (strip + 1) * kStrip, k_}) - begin;
      const double* const from = products_.row(strip).slice(begin, count).data;
      for (int64_t i = 0; i < count; ++i) p.data[i] += from[i];
    }
    kernels.subtract_rows(v(begin, end), {w_dots_.data(), done()}, p);
    kernels.subtract_rows(w(begin, end), {v_dots_.data(), done()}, p);
    kernels.row_products({p.data, 1, p.size}, a_.row(k_).slice(begin, p.size),
                         sums().row(task).slice(0, 1));
  }

  void finish() {
    double dot = 0;
    for (int64_t task = 0; task < parts(k_, kChunk); ++task) dot += sums()(task, 0);
    const double shift = tau_ * tau_ * dot / 2;
    const double* const v = a_.row(k_).data;
    double* const w = w_.row(k_ - base_).data;
    for (int64_t i = 0; i < k_; ++i) w[i] = tau_ * w[i] - shift * v[i];
  }

  int64_t next() {
    if (step_ == Step::kRow) {
      reflect();
      step_ = Step::kProduct;
      return parts(k_, kStrip);
    }
    if (step_ == Step::kProduct) {
      step_ = Step::kCollect;
      return parts(k_, kChunk);
    }
    finish();
    step_ = Step::kRow;
    return --k_ < base_ ? 0 : parts(k_ + 1, kChunk);
  }

  Reduction& to_;
  MatrixView<double> a_, w_, products_;
  int64_t base_, first_, k_;
  double tau_ = 0;
  Buffer<double> sums_, v_dots_, w_dots_;
  Step step_ = Step::kRow;
};

Reduction::Reduction(MatrixView<double> a, const Execution& execution)
    : diagonal(static_cast<size_t>(a.rows)),
      off_diagonal(static_cast<size_t>(a.rows)),
      a_(a),
      tau_(static_cast<size_t>(a.rows), 0.0) {
  const int64_t n = a.rows, most = std::max(parts(n, kStrip), parts(n, kChunk));
  Buffer<double> w(static_cast<size_t>(kPanel * n)),
      products(static_cast<size_t>(parts(n, kStrip) * n));
  Phases phases(most, execution);
  InterruptCheck check(execution.interrupted);
  for (int64_t first = n - 1; first >= 1;) {
    Panel panel(*this, first, {w.data(), kPanel, n}, {products.data(), parts(n, kStrip), n});
    panel.reduce(phases, execution);
    const int64_t base = panel.base();
    update(base, first, {w.data(), first - base + 1, n}, execution);
    first = base - 1;
    check();
  }
  diagonal[0] = a(0, 0);
}

// The rows before `base` -= V'W + W'V, in the lower triangle.
void Reduction::update(int64_t base, int64_t first, MatrixView<const double> w,
                       const Execution& execution) {
  const int64_t size = first - base + 1, tiles = parts(base, kTile);
  Buffer<double> both(static_cast<size_t>(4 * size * base));
  const MatrixView<double> vw(both.data(), 2 * size, base),
      wv(both.data() + 2 * size * base, 2 * size, base);
  for (int64_t r = 0; r < size; ++r) {
    std::copy_n(a_.row(base + r).data, base, vw.row(r).data);
    std::copy_n(w.row(r).data, base, vw.row(size + r).data);
    std::copy_n(w.row(r).data, base, wv.row(r).data);
    std::copy_n(a_.row(base + r).data, base, wv.row(size + r).data);
  }
  const Kernels& kernels = *execution.kernels;
  parallel_for(tiles * (tiles + 1) / 2, kernels.product_scratch(kTile), execution,
               [&](int64_t task, Arena arena) {
                 int64_t i = 0;
                 for (; task > i; ++i) task -= i + 1;
                 const int64_t row = i * kTile, column = task * kTile;
                 const int64_t tall = std::min(kTile, base - row),
                               wide = std::min(kTile, base - column);
                 kernels.product({vw.data + row, tall, vw.rows, 1, vw.stride},
                                 wv.columns_from(column, wide), Write::kSubtract,
                                 a_.rows_from(row, tall).columns_from(column, wide), arena);
               });
}

// H_last ... H_first = I - V' S V with S triangular; z' (I - V' S' V) needs V' and S' V.
void Reduction::apply(MatrixView<double> rows, const Execution& execution) const {
  const int64_t n = a_.rows, blocks = parts(n - 1, kBlock);
  const auto first_of = [](int64_t block) { return 1 + block * kBlock; };
  const auto size_of = [&](int64_t block) { return std::min(kBlock, n - first_of(block)); };
  const auto width_of = [&](int64_t block) { return first_of(block) + size_of(block) - 1; };
  Buffer<double> v(static_cast<size_t>(blocks * kBlock * n)), sv(v.size());
  const auto block_of = [&](Buffer<double>& from, int64_t block) {
    return from.data() + block * kBlock * n;
  };
  const Kernels& kernels = *execution.kernels;
  const int64_t room = scratch<double>(2 * kBlock * kBlock) + scratch<double>(kBlock * n);
  parallel_for(blocks, room, execution, [&](int64_t block, Arena arena) {
    const int64_t first = first_of(block), size = size_of(block), width = width_of(block);
    const MatrixView<double> across(block_of(v, block), width, size);
    const MatrixView<double> out(block_of(sv, block), size, width);
    const auto s = arena.take<double>(size, size), dots = arena.take<double>(size, size);
    const auto whole = arena.take<double>(size, width);
    for (int64_t r = 0; r < size; ++r) {
      const View<double> row = whole.row(r);
      std::copy_n(a_.row(first + r).data, first + r, row.data);
      std::fill(row.data + first + r, row.end(), 0.0);
    }
    for (int64_t i = 0; i < width; ++i)
      for (int64_t r = 0; r < size; ++r) across(i, r) = whole(r, i);
    for (int64_t r = 0; r < size; ++r) kernels.row_products(whole, whole.row(r), dots.row(r));
    // adding H_r on the right of those with larger numbers: column r of S = -tau_r S (V v_r)
    for (int64_t r = size; r-- > 0;) {
      const double tau = tau_[first + r];
      for (int64_t i = 0; i < size; ++i) {
        double sum = 0;
        for (int64_t j = r + 1; j < i + 1; ++j) sum += s(i, j) * dots(j, r);
        s(i, r) = i < r ? 0 : i == r ? tau : -tau * sum;
      }
    }
    for (int64_t r = 0; r < size; ++r) {  // out_r = sum_i s_ir v_i
      std::fill(out.row(r).begin(), out.row(r).end(), 0.0);
      double scales[kBlock];
      for (int64_t i = 0; i < size; ++i) scales[i] = -s(i, r);
      kernels.subtract_rows(whole, {scales, size}, out.row(r));
    }
  });
  const int64_t needed = scratch<double>(kVectors * kBlock) + kernels.product_scratch(kApplied);
  parallel_for(parts(rows.rows, kVectors), needed, execution, [&](int64_t task, Arena arena) {
    const int64_t begin = task * kVectors, count = std::min(kVectors, rows.rows - begin);
    const auto z = rows.rows_from(begin, count);
    const auto dots = arena.take<double>(kVectors * kBlock);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t size = size_of(block), width = width_of(block);
      const MatrixView<double> y(dots.data, count, size);
      kernels.product({z.data, count, width, z.stride, 1}, {block_of(v, block), width, size},
                      Write::kSet, y, arena);
      const MatrixView<const double> across(block_of(sv, block), size, width);
      for (int64_t column = 0; column < width; column += kApplied) {
        const int64_t wide = std::min(kApplied, width - column);
        kernels.product({y.data, count, size, size, 1}, across.columns_from(column, wide),
                        Write::kSubtract, z.columns_from(column, wide), arena);
      }
    }
  });
}

}  // namespace safecf
