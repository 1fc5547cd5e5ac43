// Memory on cache lines: buffers, and the scratch memory of each thread.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "arena.hpp"

namespace safecf {

// Memory on a cache line; large blocks are on huge pages where the system has them.
void* allocate_bytes(std::size_t bytes);
void free_bytes(void* block, std::size_t bytes);

template <class T>
struct BufferAllocator {
  using value_type = T;
  BufferAllocator() = default;
  template <class U>
  BufferAllocator(const BufferAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(allocate_bytes(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) { free_bytes(block, n * sizeof(T)); }
  // Leaves new elements uninitialised where no value is given.
  template <class U>
  void construct(U* element) {
    ::new (static_cast<void*>(element)) U;
  }
  template <class U>
  void construct(U* element, const U& value) {
    ::new (static_cast<void*>(element)) U(value);
  }
  bool operator==(const BufferAllocator&) const { return true; }
};

// Uninitialised unless a value is given.
template <class T>
using Buffer = std::vector<T, BufferAllocator<T>>;

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
