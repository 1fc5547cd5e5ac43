// Float buffers that start on a cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace safecf {

template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};
  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, std::size_t) { operator delete(p, kAlignment); }
  bool operator==(const CacheLineAllocator&) const { return true; }
};

using Buffer = std::vector<float, CacheLineAllocator<float>>;

}  // namespace safecf
