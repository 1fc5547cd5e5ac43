// Memory on cache lines: buffers, and the scratch memory of each thread.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "arena.hpp"

namespace safecf {

template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{kCacheLine};
  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, std::size_t) { operator delete(p, kAlignment); }
  // Leaves new elements uninitialised where no value is given.
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Values>
  void construct(U* p, Values&&... values) {
    ::new (static_cast<void*>(p)) U(static_cast<Values&&>(values)...);
  }
  bool operator==(const CacheLineAllocator&) const { return true; }
};

// Uninitialised unless a value is given.
template <class T>
using Buffer = std::vector<T, CacheLineAllocator<T>>;

// The scratch memory of a thread during one loop. Between loops the thread keeps it, unless it is
// large. A loop inside a loop gets memory of its own.
class ThreadScratch {
 public:
  explicit ThreadScratch(int64_t bytes);
  ~ThreadScratch();
  ThreadScratch(const ThreadScratch&) = delete;

  // All of the memory, for one task.
  Arena arena();

 private:
  int64_t bytes_;
  Buffer<char> memory_;
};

}  // namespace safecf
