// Eigenvalues and eigenvectors of a tridiagonal matrix by divide and conquer (Cuppen 1981, Gu and
// Eisenstat 1995). T is torn into two halves and a matrix of rank one,
//   T = diag(T_1, T_2) + rho u u' ,
// so that with the eigenvectors of the halves T ~ D + rho z z', whose eigenvalues are the roots of
//   1 + rho sum_i z_i^2 / (d_i - lambda) = 0
// and whose eigenvectors are (z_i / (d_i - lambda))_i. Halves are merged from the smallest ones on.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "secular.hpp"
#include "tridiagonal.hpp"

namespace safecf {
namespace {

constexpr int64_t kLeaf = 32;               // at most this many rows are solved by QL iterations
constexpr int64_t kRoots = 16;              // per task
constexpr int64_t kColumns = 64;            // of z, or rows to be copied, per task
constexpr int64_t kTall = 96, kWide = 256;  // of a product, per task
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

int64_t parts(int64_t size, int64_t part) { return (size + part - 1) / part; }

void rotate(View<double> a, View<double> b, double c, double s) {
  for (int64_t i = 0; i < a.size; ++i) {
    const double x = a.data[i], y = b.data[i];
    a.data[i] = c * x + s * y;
    b.data[i] = c * y - s * x;
  }
}

// Implicit QL iterations; d becomes the eigenvalues, in no order, and rows the eigenvectors.
void solve_leaf(View<double> d, View<double> e, MatrixView<double> rows) {
  const int64_t n = d.size;
  for (int64_t low = 0; low < n; ++low) {
    for (int iteration = 0; iteration < 60; ++iteration) {
      int64_t high = low;
      while (high + 1 < n &&
             std::abs(e[high]) > kEpsilon * (std::abs(d[high]) + std::abs(d[high + 1])))
        ++high;
      if (high == low) break;
      double g = (d[low + 1] - d[low]) / (2 * e[low]), r = std::hypot(g, 1.0);
      g = d[high] - d[low] + e[low] / (g + std::copysign(r, g));
      double s = 1, c = 1, p = 0;
      int64_t i = high - 1;
      for (; i >= low; --i) {
        double f = s * e[i];
        const double b = c * e[i];
        r = std::hypot(f, g);
        e[i + 1] = r;
        if (r == 0) {
          d[i + 1] -= p;
          e[high] = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        rotate(rows.row(i + 1), rows.row(i), c, s);
      }
      if (r == 0 && i >= low) continue;
      d[low] -= p;
      e[low] = g;
      e[high] = 0;
    }
  }
}

// Two neighbouring blocks of T, [begin, middle) and [middle, end), that become one.
struct Merge {
  int64_t begin, middle, end;
  double coupling;  // the element of T between them

  // After `deflate`: what is left of D + rho z z', ascending in d, and for each where its old
  // vector is among the gathered ones: those of the first block only, mixed ones, those of the
  // second.
  std::vector<double> d, z, weights, new_z;
  std::vector<int64_t> places;
  std::vector<int64_t> sources;  // of all gathered vectors, the deflated ones last
  int64_t first = 0, mixed = 0;
  double total = 0;

  int64_t size() const { return end - begin; }
  int64_t left() const { return static_cast<int64_t>(d.size()); }
};

class Solver {
 public:
  Solver(View<double> diagonal, View<const double> off_diagonal, MatrixView<double> rows,
         MatrixView<double> room, const Execution& execution)
      : n_(diagonal.size),
        values_(diagonal),
        e_(off_diagonal),
        q_(rows),
        order_(static_cast<size_t>(n_)),
        gathered_(room),
        unit_memory_(static_cast<size_t>(n_ * n_)),
        unit_(unit_memory_.data(), n_, n_),
        execution_(execution),
        kernels_(*execution.kernels),
        check_(execution.interrupted) {}

  std::vector<int64_t> solve() {
    std::vector<int64_t> bounds{0, n_};
    std::vector<std::vector<int64_t>> levels;
    while (n_ / static_cast<int64_t>(bounds.size() - 1) >= kLeaf) {
      levels.push_back(bounds);
      std::vector<int64_t> halves;
      for (size_t i = 0; i + 1 < bounds.size(); ++i)
        halves.insert(halves.end(), {bounds[i], (bounds[i] + bounds[i + 1]) / 2});
      halves.push_back(n_);
      bounds = halves;
    }
    solve_leaves(bounds);
    for (; !levels.empty(); levels.pop_back()) {
      std::vector<Merge> merges;
      for (size_t i = 0; i + 2 < bounds.size(); i += 2)
        merges.push_back({bounds[i], bounds[i + 1], bounds[i + 2], e_[bounds[i + 1] - 1]});
      merge(merges);
      bounds = levels.back();
    }
    return order_;
  }

 private:
  void sort(int64_t begin, int64_t end) {
    const auto from = order_.begin() + begin, to = order_.begin() + end;
    std::iota(from, to, begin);
    std::stable_sort(from, to, [&](int64_t a, int64_t b) { return values_[a] < values_[b]; });
  }

  void solve_leaves(const std::vector<int64_t>& bounds) {
    for (size_t i = 1; i + 1 < bounds.size(); ++i) {
      const double torn = std::abs(e_[bounds[i] - 1]);
      values_[bounds[i] - 1] -= torn;
      values_[bounds[i]] -= torn;
    }
    parallel_for(static_cast<int64_t>(bounds.size()) - 1, execution_, [&](int64_t leaf) {
      const int64_t begin = bounds[leaf], size = bounds[leaf + 1] - begin;
      for (int64_t row = begin; row < begin + size; ++row) {
        std::fill(q_.row(row).begin(), q_.row(row).end(), 0.0);
        q_(row, row) = 1;
      }
      double off[kLeaf + 1];
      std::copy_n(e_.data + begin, size, off);
      off[size - 1] = 0;
      solve_leaf(values_.slice(begin, size), {off, size},
                 q_.rows_from(begin, size).columns_from(begin, size));
      sort(begin, begin + size);
    });
  }

  // Finds the eigenvalues and vectors that stay: z_i ~ 0, or two d's that agree, one z_i rotated
  // away.
  void deflate(Merge& m) {
    const int64_t size = m.size();
    const double sign = m.coupling < 0 ? -1 : 1, rho = 2 * std::abs(m.coupling);
    std::vector<double> z(static_cast<size_t>(size));
    double largest_d = 0, largest_z = 0;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t row = m.begin + i;
      z[i] = (row < m.middle ? q_(row, m.middle - 1) : sign * q_(row, m.middle)) / std::sqrt(2.0);
      largest_d = std::max(largest_d, std::abs(values_[row]));
      largest_z = std::max(largest_z, std::abs(z[i]));
    }
    const double tolerance = 8 * kEpsilon * std::max(largest_d, largest_z);
    std::vector<int64_t> ascending(static_cast<size_t>(size)), kept, deflated;
    const auto order = order_.begin();
    std::merge(order + m.begin, order + m.middle, order + m.middle, order + m.end,
               ascending.begin(), [&](int64_t a, int64_t b) { return values_[a] < values_[b]; });
    std::vector<char> is_mixed(static_cast<size_t>(size), 0);
    for (const int64_t row : ascending) {
      if (rho * std::abs(z[row - m.begin]) <= tolerance) {
        deflated.push_back(row);
        continue;
      }
      if (!kept.empty()) {
        const int64_t before = kept.back();
        double &z0 = z[before - m.begin], &z1 = z[row - m.begin];
        const double norm = std::hypot(z0, z1), c = z1 / norm, s = -z0 / norm;
        double &d0 = values_[before], &d1 = values_[row];
        if (std::abs((d1 - d0) * c * s) <= tolerance) {
          rotate(q_.row(before).slice(m.begin, size), q_.row(row).slice(m.begin, size), c, s);
          const double mean = d0 * c * c + d1 * s * s;
          d1 = d0 * s * s + d1 * c * c;
          d0 = mean;
          z0 = 0, z1 = norm;
          const bool apart = (before < m.middle) != (row < m.middle);
          char &mixed0 = is_mixed[before - m.begin], &mixed1 = is_mixed[row - m.begin];
          mixed0 = mixed1 = apart || mixed0 || mixed1;
          deflated.push_back(before);
          kept.pop_back();
        }
      }
      kept.push_back(row);
    }
    const auto kind = [&](int64_t row) {
      return is_mixed[row - m.begin] ? 1 : row < m.middle ? 0 : 2;
    };
    int64_t counts[3] = {};
    for (const int64_t row : kept) ++counts[kind(row)];
    m.first = counts[0], m.mixed = counts[1];
    int64_t next[3] = {0, counts[0], counts[0] + counts[1]};
    m.sources.resize(kept.size());
    for (const int64_t row : kept) {
      const double value = z[row - m.begin];
      m.d.push_back(values_[row]);
      m.z.push_back(value);
      m.weights.push_back(rho * value * value);
      m.places.push_back(next[kind(row)]++);
      m.sources[m.places.back()] = row;
    }
    m.sources.insert(m.sources.end(), deflated.begin(), deflated.end());
    m.new_z.resize(kept.size());
    m.total = std::accumulate(m.weights.begin(), m.weights.end(), 0.0);
    std::vector<double> stay;
    for (const int64_t row : deflated) stay.push_back(values_[row]);
    std::copy(stay.begin(), stay.end(), values_.data + m.begin + m.left());
  }

  // Calls body(merge, first, count) for `part` of merge.left(), or of its size, in parallel.
  template <class Body>
  void for_parts(std::vector<Merge>& merges, bool whole, int64_t part, int64_t room,
                 const Body& body) {
    check_();
    struct Task {
      Merge* merge;
      int64_t first, count;
    };
    std::vector<Task> tasks;
    for (Merge& m : merges) {
      const int64_t size = whole ? m.size() : m.left();
      for (int64_t i = 0; i < size; i += part) tasks.push_back({&m, i, std::min(part, size - i)});
    }
    parallel_for(static_cast<int64_t>(tasks.size()), room, execution_,
                 [&](int64_t task, Arena arena) {
                   body(*tasks[task].merge, tasks[task].first, tasks[task].count, arena);
                 });
  }

  // unit_(j, i) = d_i - lambda_j
  void find_roots(Merge& m, int64_t first, int64_t count) {
    const View<const double> d(m.d.data(), m.left()), weights(m.weights.data(), m.left());
    for (int64_t j = first; j < first + count; ++j) {
      const Root root = find_root(d, weights, j, m.total, kernels_);
      values_[m.begin + j] = root.origin + root.shift;
      double* const row = unit_.row(m.begin + j).data + m.begin;
      for (int64_t i = 0; i < d.size; ++i) row[i] = (d.data[i] - root.origin) - root.shift;
    }
  }

  // The z whose roots are exactly those found: z_i^2 = prod_j (lambda_j - d_i) / prod (d_j - d_i).
  void find_z(Merge& m, int64_t first, int64_t count) {
    double products[kColumns];
    std::fill_n(products, count, 1.0);
    for (int64_t j = 0; j < m.left(); ++j) {
      const double* const row = unit_.row(m.begin + j).data + m.begin + first;
      for (int64_t i = 0; i < count; ++i)
        products[i] *= first + i == j ? row[i] : row[i] / (m.d[first + i] - m.d[j]);
    }
    for (int64_t i = 0; i < count; ++i)
      m.new_z[first + i] = std::copysign(std::sqrt(std::abs(products[i])), m.z[first + i]);
  }

  // Rows j of `unit_`: the eigenvectors of D + rho z z', their numbers where `places` says.
  void find_vectors(Merge& m, int64_t first, int64_t count, Arena arena) {
    const View<double> vector = arena.take<double>(m.left());
    for (int64_t j = first; j < first + count; ++j) {
      double* const row = unit_.row(m.begin + j).data + m.begin;
      double squares = 0;
      for (int64_t i = 0; i < m.left(); ++i) {
        vector[i] = m.new_z[i] / row[i];
        squares += vector[i] * vector[i];
      }
      const double scale = 1 / std::sqrt(squares);
      for (int64_t i = 0; i < m.left(); ++i) row[m.places[i]] = scale * vector[i];
    }
  }

  void gather(const Merge& m, int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i)
      std::copy_n(q_.row(m.sources[i]).data + m.begin, m.size(),
                  gathered_.row(m.begin + i).data + m.begin);
  }

  // A part of the new vectors: `count` rows from `first` on, the columns [begin, end), which are
  // those of one block: from its old vectors and the mixed ones.
  void multiply(const Merge& m, int64_t first, int64_t count, int64_t begin, int64_t end,
                Arena arena) {
    const bool second = begin >= m.middle;
    const int64_t skip = second ? m.first : 0;
    const int64_t depth = second ? m.left() - m.first : m.first + m.mixed;
    const auto to = q_.rows_from(m.begin + first, count).columns_from(begin, end - begin);
    if (depth == 0)
      for (int64_t i = 0; i < count; ++i) std::fill(to.row(i).begin(), to.row(i).end(), 0.0);
    kernels_.product({unit_.row(m.begin + first).data + m.begin + skip, count, depth, n_, 1},
                     gathered_.rows_from(m.begin + skip, depth).columns_from(begin, end - begin),
                     Write::kSet, to, arena);
  }

  void multiply(const std::vector<Merge>& merges) {
    struct Tile {
      const Merge* merge;
      int64_t row, begin, end;
    };
    std::vector<Tile> tiles;
    for (const Merge& m : merges)
      for (int64_t row = 0; row < m.left(); row += kTall)
        for (const auto& [begin, end] : {std::pair(m.begin, m.middle), std::pair(m.middle, m.end)})
          for (int64_t column = begin; column < end; column += kWide)
            tiles.push_back({&m, row, column, std::min(end, column + kWide)});
    parallel_for(static_cast<int64_t>(tiles.size()), kernels_.product_scratch(kWide), execution_,
                 [&](int64_t task, Arena arena) {
                   const auto& [m, row, begin, end] = tiles[task];
                   multiply(*m, row, std::min(kTall, m->left() - row), begin, end, arena);
                 });
  }

  void merge(std::vector<Merge>& merges) {
    check_();
    parallel_for(static_cast<int64_t>(merges.size()), execution_,
                 [&](int64_t i) { deflate(merges[i]); });
    for_parts(merges, true, kColumns, 0,
              [&](Merge& m, int64_t first, int64_t count, Arena) { gather(m, first, count); });
    for_parts(merges, false, kRoots, 0,
              [&](Merge& m, int64_t first, int64_t count, Arena) { find_roots(m, first, count); });
    for_parts(merges, false, kColumns, 0,
              [&](Merge& m, int64_t first, int64_t count, Arena) { find_z(m, first, count); });
    for_parts(merges, false, kRoots, scratch<double>(n_),
              [&](Merge& m, int64_t first, int64_t count, Arena arena) {
                find_vectors(m, first, count, arena);
              });
    check_();
    multiply(merges);
    parallel_for(static_cast<int64_t>(merges.size()), execution_, [&](int64_t i) {
      const Merge& m = merges[i];
      for (int64_t row = m.left(); row < m.size(); ++row)
        std::copy_n(gathered_.row(m.begin + row).data + m.begin, m.size(),
                    q_.row(m.begin + row).data + m.begin);
      sort(m.begin, m.end);
    });
  }

  int64_t n_;
  View<double> values_;
  View<const double> e_;
  MatrixView<double> q_;
  std::vector<int64_t> order_;
  MatrixView<double> gathered_;
  Buffer<double> unit_memory_;
  MatrixView<double> unit_;
  const Execution& execution_;
  const Kernels& kernels_;
  InterruptCheck check_;
};

}  // namespace

std::vector<int64_t> tridiagonal_eigen(View<double> diagonal, View<const double> off_diagonal,
                                       MatrixView<double> rows, MatrixView<double> room,
                                       const Execution& execution) {
  return Solver(diagonal, off_diagonal, rows, room, execution).solve();
}

}  // namespace safecf
