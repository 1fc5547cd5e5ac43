// The one parallel loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>

#include "arena.hpp"

namespace safecf {

struct Kernels;

// How to run. `interrupted` tells that the user wants to stop; only the calling thread asks it, a
// few times a second.
struct Execution {
  const Kernels* kernels = nullptr;
  int threads = 0;  // 0: all cores
  bool (*interrupted)() = nullptr;

  int64_t num_threads() const;
};

// Thrown out of a loop when `interrupted` says so.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// Throws Interrupted when `interrupted` says so; it is asked a few times a second.
class InterruptCheck {
 public:
  explicit InterruptCheck(bool (*interrupted)()) : interrupted_(interrupted) {}

  void operator()() {
    if (!interrupted_ || Clock::now() - checked_ <= std::chrono::milliseconds(50)) return;
    if (interrupted_()) throw Interrupted();
    checked_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool (*interrupted_)();
  Clock::time_point checked_ = Clock::now();
};

struct Loop {
  int64_t tasks;
  int64_t scratch;  // bytes
  const void* body;
  void (*call)(const void* body, int64_t task, Arena arena);
};

// Runs the tasks on the calling thread and on helpers from a pool that lives as long as the
// process. Callers that run at the same time share the pool. A forked child starts with an empty
// pool.
void run(const Loop& loop, const Execution& execution);

// Calls body(task, arena) for every task in [0, tasks), in any order, on several threads, with an
// arena of `scratch` bytes. The first exception ends the loop.
template <class Body>
void parallel_for(int64_t tasks, int64_t scratch, const Execution& execution, const Body& body) {
  const auto call = [](const void* which, int64_t task, Arena arena) {
    (*static_cast<const Body*>(which))(task, arena);
  };
  run({tasks, scratch, &body, call}, execution);
}

// The same without scratch memory: body(task).
template <class Body>
void parallel_for(int64_t tasks, const Execution& execution, const Body& body) {
  parallel_for(tasks, 0, execution, [&](int64_t task, Arena) { body(task); });
}

}  // namespace safecf
