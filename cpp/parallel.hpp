// The one parallel loop: tasks handed out one at a time, scratch per thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace safecf {

// How to run: the number of threads (0: all cores), and what tells that the user wants to stop.
// `interrupted` is asked by the calling thread only, a few times a second.
struct Execution {
  int threads = 1;
  std::function<bool()> interrupted = [] { return false; };
};

// Thrown out of a parallel loop when `interrupted` said so.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// Calls body(task, scratch) for every task in [0, tasks), in any order, on several threads, each
// with a scratch of its own made by make_scratch(). The first exception ends the loop.
template <class MakeScratch, class Body>
void parallel_for(int64_t tasks, const Execution& execution, MakeScratch make_scratch, Body body) {
  using Clock = std::chrono::steady_clock;
  std::atomic<int64_t> next{0};
  std::exception_ptr failure;
  std::mutex guard;
  const auto work = [&](bool watch) {
    try {
      auto scratch = make_scratch();
      auto asked = Clock::now();
      for (int64_t task; (task = next.fetch_add(1)) < tasks;) {
        body(task, scratch);
        if (watch && Clock::now() - asked > std::chrono::milliseconds(50)) {
          if (execution.interrupted()) throw Interrupted();
          asked = Clock::now();
        }
      }
    } catch (...) {
      const std::lock_guard lock(guard);
      if (!failure) failure = std::current_exception();
      next.store(tasks);
    }
  };
  const int64_t cores =
      execution.threads > 0 ? execution.threads : std::max(1u, std::thread::hardware_concurrency());
  constexpr int64_t kMostThreads = 1024;
  std::vector<std::jthread> others;
  try {
    for (int64_t i = 1; i < std::min({cores, tasks, kMostThreads}); ++i)
      others.emplace_back(work, false);
  } catch (const std::system_error&) {
    // the system has no more threads: go on with those that there are
  }
  work(true);
  others.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

}  // namespace safecf
