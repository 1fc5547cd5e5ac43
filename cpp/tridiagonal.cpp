// Reduction of a symmetric matrix to tridiagonal form by reflections, a panel of rows at a time.
#include "tridiagonal.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "phases.hpp"

namespace safecf {
namespace {

// All sizes are fixed, so that sums have the same order for any number of threads.
constexpr int64_t kPanel = 32;    // reflections between two updates of the rest
constexpr int64_t kStrip = 64;    // rows per task of a product A v
constexpr int64_t kChunk = 128;   // coordinates per task of the sums over a panel
constexpr int64_t kTile = 128;    // rows and columns per task of an update
constexpr int64_t kColumns = 32;  // eigenvectors per task
constexpr int64_t kBlock = 48;    // reflections applied together: a multiple of `Kernels::tall`

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
  const Kernels& kernels = *execution.kernels;
  const MatrixView<const double> v = a_.rows_from(base, size);
  // the columns from `column` on of one matrix above the other
  const auto stacked = [&](MatrixView<const double> above, MatrixView<const double> below,
                           int64_t column, int64_t count, Arena& arena) {
    const auto both = arena.take<double>(2 * size, count);
    for (int64_t r = 0; r < size; ++r) {
      std::copy_n(above.row(r).data + column, count, both.row(r).data);
      std::copy_n(below.row(r).data + column, count, both.row(size + r).data);
    }
    return both;
  };
  const int64_t room = 2 * scratch<double>(2 * kPanel * kTile) + kernels.product_scratch(kTile);
  parallel_for(tiles * (tiles + 1) / 2, room, execution, [&](int64_t task, Arena arena) {
    int64_t i = 0;
    for (; task > i; ++i) task -= i + 1;
    const int64_t row = i * kTile, column = task * kTile;
    const int64_t tall = std::min(kTile, base - row), wide = std::min(kTile, base - column);
    const auto vw = stacked(v, w, row, tall, arena), wv = stacked(w, v, column, wide, arena);
    kernels.product({vw.data, tall, vw.rows, 1, vw.stride}, wv, Write::kSubtract,
                    a_.rows_from(row, tall).columns_from(column, wide), arena);
  });
}

// Blocks of kBlock reflections, the last one filled up with none, each packed for products from the
// left: H_last ... H_first = I - V' S V with S triangular. Block b has (b + 1) kBlock coordinates.
class Reduction::Blocks {
 public:
  Blocks(const Reduction& from, const Execution& execution)
      : from_(from),
        kernels_(*execution.kernels),
        count_(parts(from.a_.rows - 1, kBlock)),
        left_(static_cast<size_t>(begin(count_))),
        right_(left_.size()) {
    const int64_t room =
        2 * scratch<double>(kBlock * kBlock) + 2 * scratch<double>(kBlock * rows());
    parallel_for(count_, room, execution, [&](int64_t block, Arena arena) { pack(block, arena); });
  }

  int64_t rows() const { return count_ * kBlock; }

  // Z := H_(n-1) ... H_1 Z for panels of `wide` columns; `room` holds one of kBlock rows for each.
  void apply(const std::vector<MatrixView<double>>& panels, MatrixView<double> room) const {
    for (int64_t block = 0; block < count_; ++block) {
      const int64_t width = (block + 1) * kBlock;
      // calls body(at, rows of the panel, of the room) for the packed parts, each once per panel
      const auto for_parts = [&](const auto& body) {
        for (int64_t k = 0; k < width; k += kDepth)
          for (size_t i = 0; i < panels.size(); ++i)
            body(begin(block) + k * kBlock, k, panels[i].rows_from(k, std::min(kDepth, width - k)),
                 room.rows_from(static_cast<int64_t>(i) * kBlock, kBlock));
      };
      for_parts([&](int64_t at, int64_t k, MatrixView<double> z, MatrixView<double> products) {
        kernels_.multiply_panel({right_.data() + at, z.rows * kBlock}, z,
                                k == 0 ? Write::kSet : Write::kAdd, products);
      });
      for_parts([&](int64_t at, int64_t, MatrixView<double> z, MatrixView<double> products) {
        kernels_.multiply_panel({left_.data() + at, z.rows * kBlock}, products, Write::kSubtract,
                                z);
      });
    }
  }

 private:
  static constexpr int64_t kDepth = 3 * kBlock;

  static int64_t begin(int64_t block) { return kBlock * kBlock * block * (block + 1) / 2; }

  void pack(int64_t block, Arena arena) {
    const int64_t first = 1 + block * kBlock, width = (block + 1) * kBlock;
    const auto s = arena.take<double>(kBlock, kBlock), dots = arena.take<double>(kBlock, kBlock);
    const auto v = arena.take<double>(kBlock, width), sv = arena.take<double>(kBlock, width);
    for (int64_t r = 0; r < kBlock; ++r) {
      const int64_t size = first + r < from_.a_.rows ? first + r : 0;
      if (size > 0) std::copy_n(from_.a_.row(first + r).data, size, v.row(r).data);
      std::fill(v.row(r).data + size, v.row(r).end(), 0.0);
    }
    for (int64_t r = 0; r < kBlock; ++r) kernels_.row_products(v, v.row(r), dots.row(r));
    // with H_r on the right of those of larger numbers: column r of S is -tau_r S (V v_r)
    for (int64_t r = kBlock; r-- > 0;) {
      const double tau = first + r < from_.a_.rows ? from_.tau_[first + r] : 0;
      for (int64_t i = 0; i < kBlock; ++i) {
        double sum = 0;
        for (int64_t j = r + 1; j <= i; ++j) sum += s(i, j) * dots(j, r);
        s(i, r) = i < r ? 0 : i == r ? tau : -tau * sum;
      }
    }
    for (int64_t r = 0; r < kBlock; ++r) {
      double scales[kBlock];
      for (int64_t i = 0; i < kBlock; ++i) scales[i] = -s(r, i);
      std::fill(sv.row(r).begin(), sv.row(r).end(), 0.0);
      kernels_.subtract_rows(v, {scales, kBlock}, sv.row(r));
    }
    // Z - V' (S V Z): packed are S V, in chunks of the depth, and V'
    for (int64_t k = 0; k < width; k += kDepth) {
      const int64_t depth = std::min(kDepth, width - k);
      kernels_.pack_tall({sv.data + k, kBlock, depth, width, 1},
                         {right_.data() + begin(block) + k * kBlock, depth * kBlock});
    }
    kernels_.pack_tall({v.data, width, kBlock, 1, width},
                       {left_.data() + begin(block), width * kBlock});
  }

  const Reduction& from_;
  const Kernels& kernels_;
  int64_t count_;
  Buffer<double> left_, right_;  // V' and S V
};

void Reduction::rotate_back(MatrixView<const double> rows, const std::vector<int64_t>& order,
                            MatrixView<double> basis, const Execution& execution) const {
  const int64_t n = a_.rows, wide = execution.kernels->wide;
  const Blocks blocks(*this, execution);
  const int64_t tall = std::max(n, blocks.rows());
  // fewer panels per task where there are few tasks
  const int64_t most = n < 1024 ? 1 : std::max<int64_t>(1, kColumns / wide);
  const int64_t needed =
      scratch<double>(most * tall * wide) + scratch<double>(most * kBlock * wide);
  parallel_for(parts(n, most * wide), needed, execution, [&](int64_t task, Arena arena) {
    const int64_t first = task * most * wide, count = std::min(most * wide, n - first);
    const auto all = arena.take<double>(most * tall, wide);
    const auto room = arena.take<double>(most * kBlock, wide);
    std::vector<MatrixView<double>> panels;
    for (int64_t i = 0; i < parts(count, wide); ++i)
      panels.push_back(all.rows_from(i * tall, tall));
    std::fill(all.data, all.data + all.rows * wide, 0.0);
    for (int64_t j = 0; j < count; ++j) {
      const View<const double> vector = rows.row(order[first + j]);
      for (int64_t i = 0; i < n; ++i) panels[j / wide](i, j % wide) = vector[i];
    }
    blocks.apply(panels, room);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < count; ++j) basis(i, first + j) = panels[j / wide](i, j % wide);
  });
}

}  // namespace safecf
