// The parallel loop, its thread pool, phases of tasks, and views that check their indices.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <stdexcept>
#include <string>
#include <thread>

#include "check.hpp"
#include "phases.hpp"

namespace {

using namespace safecf;

Execution on(int threads, bool (*interrupted)() = nullptr) {
  return {nullptr, threads, interrupted};
}

int64_t sum_of_tasks(int64_t tasks, int threads) {
  std::atomic<int64_t> total{0};
  parallel_for(tasks, on(threads), [&](int64_t task) { total += task + 1; });
  return total;
}

// Runs `child` in a forked process and returns its exit code.
template <class Child>
int exit_code_of(const Child& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);  // rather than hang
    std::_Exit(child());
  }
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void test_every_task_runs_once_with_an_arena() {
  for (const int threads : {0, 1, 2, 9}) {
    std::vector<std::atomic<int>> seen(1000);
    parallel_for(1000, scratch<double>(100) + scratch<char>(1), on(threads),
                 [&](int64_t task, Arena arena) {
                   const auto numbers = arena.take<double>(100);
                   const auto letter = arena.take<char>(1);
                   CHECK(reinterpret_cast<uintptr_t>(letter.data) % kCacheLine == 0);
                   for (double& number : numbers) number = static_cast<double>(task);
                   letter[0] = 'x';
                   CHECK(numbers[99] == static_cast<double>(task));
                   ++seen[task];
                 });
    for (const auto& count : seen) CHECK(count == 1);
  }
  parallel_for(0, on(4), [](int64_t) { CHECK(false); });
  for (int loop = 0; loop < 20'000; ++loop) CHECK(sum_of_tasks(5, 4) == 15);
}

// The message of what a loop throws, if it throws.
template <class Loop>
std::string error_of(const Loop& loop) {
  try {
    loop();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void test_the_first_exception_ends_the_loop() {
  for (int repeat = 0; repeat < 100; ++repeat) {
    std::atomic<int> done{0};
    CHECK(error_of([&] {
            parallel_for(1'000'000, on(3), [&](int64_t task) {
              if (task == 10) throw std::runtime_error("ten");
              ++done;
            });
          }) == "ten");
    CHECK(done < 1'000'000);
  }
}

void test_loops_inside_loops_and_their_exceptions() {
  std::atomic<int64_t> total{0}, failed{0};
  parallel_for(8, scratch<int>(4), on(4), [&](int64_t outer, Arena arena) {
    const auto kept = arena.take<int>(4);
    for (int& value : kept) value = static_cast<int>(outer);
    failed += error_of([&] {
                parallel_for(50, scratch<int>(8), on(3), [&](int64_t inner, Arena inner_arena) {
                  for (int& value : inner_arena.take<int>(8)) value = -1;
                  if (outer % 2 == 1 && inner == 20) throw std::runtime_error("inner");
                  total += inner;
                });
              }) == "inner";
    for (const int value : kept) CHECK(value == outer);
  });
  CHECK(failed == 4);
  CHECK(total >= 4 * 1225);
  CHECK(error_of([] {
          parallel_for(8, on(4), [](int64_t) {
            parallel_for(8, on(4), [](int64_t) { throw std::logic_error("inside"); });
          });
        }) == "inside");
}

void test_callers_at_the_same_time() {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller)
    callers.emplace_back([caller] {
      for (int loop = 0; loop < 500; ++loop) {
        CHECK(sum_of_tasks(100, 1 + caller % 4) == 5050);
        CHECK(error_of([&] {
                parallel_for(100, on(4), [&](int64_t task) {
                  if (task == loop % 100) throw std::runtime_error(std::to_string(caller));
                });
              }) == std::to_string(caller));
      }
    });
  for (std::thread& caller : callers) caller.join();
}

// Every task of a phase adds to the sums of the phase before.
void test_phases_wait_for_each_other() {
  constexpr int64_t kTasks = 13, kPhases = 500;
  for (const int threads : {1, 2, 5}) {
    Phases phases(kTasks, on(threads));
    for (int again = 0; again < 3; ++again) {
      std::atomic<int64_t> calls{0};
      int64_t total = 0, phase = 0, sums[kTasks] = {}, expected_calls = 0, expected = 0;
      const auto tasks_of = [](int64_t p) { return p == 0 ? kTasks : 1 + p % kTasks; };
      phases.run(
          kTasks, on(threads),
          [&](int64_t task) {
            CHECK(task < tasks_of(phase));
            sums[task] = total + task;
            ++calls;
          },
          [&]() -> int64_t {
            for (int64_t& sum : sums) total = (total + sum) % 1000003, sum = 0;
            return ++phase < kPhases ? tasks_of(phase) : 0;
          });
      for (int64_t i = 0; i < kPhases; expected_calls += tasks_of(i++))
        for (int64_t task = 0, before = expected; task < tasks_of(i); ++task)
          expected = (expected + before + task) % 1000003;
      CHECK(calls == expected_calls && total == expected);
    }
  }
}

void test_only_the_caller_is_asked_for_an_interrupt() {
  static const std::thread::id caller = std::this_thread::get_id();
  const auto interrupted = [] {
    CHECK(std::this_thread::get_id() == caller);
    return true;
  };
  try {
    parallel_for(int64_t{1} << 60, on(2, interrupted), [](int64_t) {});
    CHECK(false);
  } catch (const Interrupted&) {
  }
}

void test_helpers_round_like_their_caller() {
  std::fesetround(FE_UPWARD);
  parallel_for(1000, on(4), [](int64_t) { CHECK(std::fegetround() == FE_UPWARD); });
  std::fesetround(FE_TONEAREST);
  parallel_for(1000, on(4), [](int64_t) { CHECK(std::fegetround() == FE_TONEAREST); });
}

void test_a_forked_child_has_a_pool_of_its_own() {
  CHECK(sum_of_tasks(1000, 4) == 500'500);
  const auto child = [] {
    for (int loop = 0; loop < 100; ++loop)
      if (sum_of_tasks(1000, 4) != 500'500) return 1;
    return exit_code_of([] { return sum_of_tasks(1000, 3) == 500'500 ? 0 : 2; });
  };
  for (int repeat = 0; repeat < 20; ++repeat) CHECK(exit_code_of(child) == 0);
  CHECK(sum_of_tasks(1000, 4) == 500'500);
}

void test_a_fork_while_others_are_in_loops() {
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&] {
      while (!stop) CHECK(sum_of_tasks(100, 3) == 5050);
    });
  for (int repeat = 0; repeat < 50; ++repeat)
    CHECK(exit_code_of([] { return sum_of_tasks(100, 4) == 5050 ? 0 : 1; }) == 0);
  stop = true;
  for (std::thread& caller : callers) caller.join();
}

// A child that is forked by `interrupted` lacks the helpers that run tasks of the loop.
void test_a_fork_inside_a_loop_is_an_error_in_the_child() {
  static pid_t child;
  child = -1;
  const auto forks_once = [] {
    if (child == -1) child = fork();
    return false;
  };
  const std::string caught = error_of([&] {
    parallel_for(300, on(2, forks_once),
                 [](int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  });
  if (child == 0) std::_Exit(caught.find("forked") != std::string::npos ? 0 : 1);
  CHECK(child > 0 && caught.empty());
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void test_debug_builds_stop_at_a_wrong_index() {
  constexpr int kAborted = 128 + SIGABRT;
  static int numbers[6] = {};
  const View<int> view(numbers, 3);
  const MatrixView<int> matrix(numbers, 2, 3);
  std::fclose(stderr);  // the messages are not for the reader of this test
  CHECK(exit_code_of([&] { return view[2]; }) == 0);
  CHECK(exit_code_of([&] { return view[3]; }) == kAborted);
  CHECK(exit_code_of([&] { return view[-1]; }) == kAborted);
  CHECK(exit_code_of([&] { return view.slice(2, 2)[0]; }) == kAborted);
  CHECK(exit_code_of([&] { return matrix(0, 3); }) == kAborted);
  CHECK(exit_code_of([&] { return matrix.rows_from(1, 2)(0, 0); }) == kAborted);
  CHECK(exit_code_of([&] {
          parallel_for(1, scratch<float>(100), on(1), [](int64_t, Arena arena) {
            arena.take<float>(90);
            arena.take<float>(20);
          });
          return 0;
        }) == kAborted);
}

}  // namespace

int main() {
  test_every_task_runs_once_with_an_arena();
  test_the_first_exception_ends_the_loop();
  test_loops_inside_loops_and_their_exceptions();
  test_callers_at_the_same_time();
  test_phases_wait_for_each_other();
  test_only_the_caller_is_asked_for_an_interrupt();
  test_helpers_round_like_their_caller();
  // ThreadSanitizer knows nothing of the threads that a forked child lacks.
  if (SAFECF_FORKS) {
    test_a_forked_child_has_a_pool_of_its_own();
    test_a_fork_while_others_are_in_loops();
    test_a_fork_inside_a_loop_is_an_error_in_the_child();
    test_debug_builds_stop_at_a_wrong_index();
  }
}
