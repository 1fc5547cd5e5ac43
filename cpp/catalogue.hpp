// The items that searches choose from.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "excluded.hpp"
#include "packed.hpp"

namespace safecf {

// A value that is made when it is first needed. Threads that come at the same time may all make it;
// the first to finish wins.
template <class T>
class Lazy {
 public:
  Lazy() = default;
  Lazy(const Lazy&) = delete;
  ~Lazy() { delete value_.load(); }

  // Null where it has not been made.
  const T* made() const { return value_.load(); }

  template <class Make>
  const T& get(const Make& make) {
    if (const T* const found = made()) return *found;
    std::unique_ptr<const T> mine = make();
    const T* first = nullptr;
    return value_.compare_exchange_strong(first, mine.get()) ? *mine.release() : *first;
  }

 private:
  std::atomic<const T*> value_{nullptr};
};

struct Found {
  MatrixView<int32_t> ids;
  MatrixView<float> scores;
};

// Finds the k best columns of queries items' per query, best first, ties by index. Ids are padded
// with -1 and scores with -FLT_MAX. Each score is summed as in a matrix product, whatever the
// number of queries: the same bits.
//
// Many queries are multiplied with the packed items. For few, scores from items in bfloat16 leave
// the items that may be among the best, and these are scored in float32. Both copies are made when
// they are first needed; the one in bfloat16 by the second search of few queries, as a single one
// is faster without.
class Catalogue {
 public:
  // The items must outlive the catalogue, and searches must use the same kernels.
  Catalogue(MatrixView<const float> items, const Kernels& kernels);

  // This and `ranks` throw std::invalid_argument as all functions of the core do, and where the
  // kernels differ.
  void search(MatrixView<const float> queries, const Excluded&, const Found&, const Execution&);

  // Writes the rank of every target, from 1 on, among the columns that are not excluded: its place
  // in a search of all columns. It is 0 where no search finds the target. Targets ascend in a row.
  void ranks(MatrixView<const float> queries, const Csr& targets, const Excluded&,
             View<int32_t> ranks, const Execution&);

  // Of the copies made so far.
  int64_t bytes() const;

 private:
  // The items in bfloat16, and the largest square of an item's norm.
  struct LowPrecision {
    Buffer<uint32_t> words;
    int64_t count;
    float largest_square;

    LowPrecision(MatrixView<const float> items, const Execution&);
    MatrixView<const uint32_t> rows() const {
      return {words.data(), count, static_cast<int64_t>(words.size()) / count};
    }
  };
  class Search;

  // What excluded columns and targets name.
  Side side() const { return {"the catalogue", items_.rows}; }

  void check(MatrixView<const float> queries, const Excluded&, const Execution&) const;
  const Packed& packed(const Execution&);

  // Null where it is of no use.
  const LowPrecision* low_precision(int64_t k, const Execution&);

  MatrixView<const float> items_;
  const Kernels& kernels_;             // by which the copies are laid out
  std::atomic<bool> searched_{false};  // by few queries
  Lazy<Packed> packed_;
  Lazy<LowPrecision> low_precision_;
};

}  // namespace safecf
