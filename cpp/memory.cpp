#include "memory.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace safecf {
namespace {

constexpr int64_t kKeptBytes = 8 << 20;  // at most, per thread and between loops

thread_local Buffer<char> kept;

constexpr std::size_t kHugePage = 2 << 20;  // bytes
constexpr std::size_t kLargeBlock = 2 * kHugePage;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes >= kLargeBlock ? kHugePage : kCacheLine};
}

}  // namespace

void* allocate_bytes(std::size_t bytes) {
  void* const block = operator new(bytes, alignment_of(bytes));
#ifdef MADV_HUGEPAGE
  if (bytes >= kLargeBlock) madvise(block, bytes, MADV_HUGEPAGE);  // a hint: it may fail
#endif
  return block;
}

void free_bytes(void* block, std::size_t bytes) { operator delete(block, alignment_of(bytes)); }

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, condition);
  std::abort();
}

ThreadScratch::ThreadScratch(int64_t bytes) : bytes_(bytes), memory_(std::exchange(kept, {})) {
  if (static_cast<int64_t>(memory_.size()) < bytes) {
    memory_ = {};  // free it first
    memory_ = Buffer<char>(static_cast<size_t>(bytes));
  }
}

ThreadScratch::~ThreadScratch() {
  if (static_cast<int64_t>(memory_.size()) <= kKeptBytes && memory_.size() > kept.size())
    kept = std::move(memory_);
}

Arena ThreadScratch::arena() {
#ifdef SAFECF_DEBUG
  if (bytes_ > 0) std::memset(memory_.data(), 0xFF, static_cast<size_t>(bytes_));  // NaN
#endif
  return {memory_.data(), memory_.data() + bytes_};
}

}  // namespace safecf
