// A thread that overwrites arrays while the core reads them.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

namespace safecf::fuzz {

// Runs only with SAFECF_SCRIBBLE in the environment. It puts hostile indices and harmless ones into
// the arrays that it is given, until it is destroyed.
class Scribbler {
 public:
  template <class... Arrays>
  explicit Scribbler(Arrays&... arrays) {
    static const bool wanted = std::getenv("SAFECF_SCRIBBLE") != nullptr;
    if (!wanted) return;
    const std::vector<Target> targets{
        {reinterpret_cast<char*>(arrays.data()), arrays.size(), sizeof(arrays[0])}...};
    thread_ = std::thread([this, targets] {
      for (; !stop_; begun_ = true) scribble(targets);
    });
    while (!begun_) std::this_thread::yield();
  }
  ~Scribbler() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  Scribbler(const Scribbler&) = delete;

 private:
  struct Target {
    char* begin;
    size_t count, width;  // bytes per index
  };

  static void scribble(const std::vector<Target>& targets) {
    static uint32_t random = 1;  // one thread at a time
    const auto next = [&] { return random = random * 1664525u + 1013904223u, random >> 8; };
    const Target& target = targets[next() % targets.size()];
    if (target.count == 0) return;
    constexpr int64_t kHostile[] = {INT64_MAX, INT64_MIN, INT32_MAX, -1, 1 << 20};
    const uint32_t code = next();
    const int64_t value = code % 8 < 5 ? kHostile[code % 8] : static_cast<int64_t>(next() % 60);
    char* const at = target.begin + next() % target.count * target.width;
    if (target.width == 8)
      __atomic_store_n(reinterpret_cast<int64_t*>(at), value, __ATOMIC_RELAXED);
    else
      __atomic_store_n(reinterpret_cast<int32_t*>(at), static_cast<int32_t>(value),
                       __ATOMIC_RELAXED);
  }

  std::atomic<bool> begun_{false}, stop_{false};
  std::thread thread_;
};

}  // namespace safecf::fuzz
