// A thread that overwrites arrays while the core reads them.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <thread>
#include <vector>

#include "view.hpp"

namespace safecf::fuzz {

// Runs only with SAFECF_SCRIBBLE in the environment. It puts hostile indices and harmless ones into
// the arrays that it is given.
class Scribbler {
 public:
  struct Target {
    char* begin;
    int64_t count;
    int width;  // bytes per index
  };

  // Overwrites the arrays until it is destroyed.
  template <class... Arrays>
  explicit Scribbler(Arrays&... arrays) {
    if (!wanted()) return;
    targets_ = {{reinterpret_cast<char*>(arrays.data()), static_cast<int64_t>(arrays.size()),
                 static_cast<int>(sizeof(arrays[0]))}...};
    thread().work.store(&targets_);
  }
  ~Scribbler() {
    if (targets_.empty()) return;
    thread().work.store(nullptr);
    while (thread().busy.load()) std::this_thread::yield();
  }
  Scribbler(const Scribbler&) = delete;

  static bool wanted() {
    static const bool found = std::getenv("SAFECF_SCRIBBLE") != nullptr;
    return found;
  }

 private:
  struct Thread {
    std::atomic<const std::vector<Target>*> work{nullptr};
    std::atomic<bool> busy{false};

    Thread() {
      std::thread([this] {
        for (uint32_t random = 1;;) {
          busy.store(true);
          const auto* const targets = work.load();
          if (targets) scribble(*targets, random);
          busy.store(false);
          if (!targets) std::this_thread::yield();
        }
      }).detach();
    }
  };
  static Thread& thread() {
    static Thread* const only = new Thread;  // it outlives the process's end
    return *only;
  }

  static void scribble(const std::vector<Target>& targets, uint32_t& random) {
    const auto next = [&] { return random = random * 1664525u + 1013904223u, random >> 8; };
    const Target& target = targets[next() % targets.size()];
    if (target.count == 0) return;
    constexpr int64_t kHostile[] = {std::numeric_limits<int64_t>::max(),
                                    std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int32_t>::max(), -1, 1 << 20};
    const uint32_t code = next();
    const int64_t value = code % 8 < 5 ? kHostile[code % 8] : static_cast<int64_t>(next() % 60);
    char* const at = target.begin + next() % target.count * target.width;
    if (target.width == 8)
      __atomic_store_n(reinterpret_cast<int64_t*>(at), value, __ATOMIC_RELAXED);
    else
      __atomic_store_n(reinterpret_cast<int32_t*>(at), static_cast<int32_t>(value),
                       __ATOMIC_RELAXED);
  }

  std::vector<Target> targets_;
};

}  // namespace safecf::fuzz
