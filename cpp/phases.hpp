// Short phases of tasks inside one parallel loop, with no sleep between them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "parallel.hpp"

namespace safecf {

// Runs phases, each when all tasks of the one before are done. A thread takes the same tasks in
// every phase where it can, which then find their data in its cache, and others that nobody has
// begun: one thread alone gets through. Threads spin between phases. Where one waits for long,
// because another lost its core to somebody else, the calling thread goes on alone, in this run and
// in some of the next.
class Phases {
 public:
  // Never more threads than cores.
  Phases(int64_t most_tasks, const Execution& execution)
      : members_(std::min({execution.num_threads(), Execution{}.num_threads(), most_tasks})),
        claims_(static_cast<size_t>(most_tasks)) {}

  // Calls task(which) for the tasks of a phase. Between phases one thread calls next(), which
  // returns the number of tasks of the next phase, or 0 to end. Neither may throw.
  template <class Task, class Next>
  void run(int64_t first_tasks, const Execution& execution, const Task& task, const Next& next) {
    caller_ = std::this_thread::get_id();
    disturbed_.store(false);
    state_.store(state_of(state_.load() / kCounts + 1, first_tasks));
    const int64_t members = alone_ > 0 ? 1 : members_;
    parallel_for(members, execution, [&](int64_t member) { work(member, members, task, next); });
    work(0, 1, task, next);  // where all others left before this thread came
    if (alone_ > 0) {
      --alone_;
    } else {
      penalty_ = disturbed_.load() ? std::min<int64_t>(2 * penalty_, 16) : 1;
      alone_ = disturbed_.load() ? penalty_ : 0;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct alignas(kCacheLine) Claim {
    std::atomic<int64_t> phase{0};  // the last one in which the task was taken
  };
  static constexpr int64_t kCounts = 1 << 20;  // a state is kCounts times the phase plus its tasks
  static constexpr std::chrono::microseconds kPatience{500};

  static int64_t state_of(int64_t phase, int64_t tasks) { return phase * kCounts + tasks; }

  template <class Task, class Next>
  void work(int64_t member, int64_t members, const Task& task, const Next& next) {
    const bool calling = std::this_thread::get_id() == caller_;
    for (int64_t state; (state = state_.load(std::memory_order_acquire)) % kCounts > 0;) {
      if (!calling && disturbed_.load(std::memory_order_relaxed)) return;
      const int64_t tasks = state % kCounts;
      // back and forth: where tasks grow with their number, members have as much to do
      for (int64_t round = 0; round * members < tasks; ++round) {
        const int64_t place = round % 2 == 0 ? member : members - 1 - member;
        if (round * members + place < tasks) attempt(round * members + place, state, task, next);
      }
      for (int64_t which = tasks; which-- > 0;) attempt(which, state, task, next);
      if (!wait(state) && !calling) return;
    }
  }

  template <class Task, class Next>
  void attempt(int64_t which, int64_t state, const Task& task, const Next& next) {
    const int64_t phase = state / kCounts, tasks = state % kCounts;
    std::atomic<int64_t>& claim = claims_[which].phase;
    int64_t before = claim.load(std::memory_order_relaxed);
    if (before >= phase || !claim.compare_exchange_strong(before, phase)) return;
    task(which);
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 < tasks) return;
    done_.store(0, std::memory_order_relaxed);
    state_.store(state_of(phase + 1, next()), std::memory_order_release);
  }

  // Until the next phase. False: it takes long.
  bool wait(int64_t state) {
    const auto changed = [&] { return state_.load(std::memory_order_acquire) != state; };
    for (auto begin = Clock::now(); Clock::now() - begin < kPatience;)
      for (int spins = 0; spins < 32; ++spins) {
        if (changed()) return true;
        pause();
      }
    disturbed_.store(true, std::memory_order_relaxed);
    if (std::this_thread::get_id() == caller_)
      while (!changed()) std::this_thread::yield();
    return false;
  }

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  int64_t members_;
  std::vector<Claim> claims_;
  std::thread::id caller_;
  int64_t alone_ = 0, penalty_ = 1;  // runs without others
  std::atomic<bool> disturbed_{false};
  alignas(kCacheLine) std::atomic<int64_t> state_{0};
  alignas(kCacheLine) std::atomic<int64_t> done_{0};
};

}  // namespace safecf
