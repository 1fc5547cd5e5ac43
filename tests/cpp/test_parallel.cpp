// The parallel loop and its thread pool.
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <stdexcept>
#include <string>
#include <thread>

#include "check.hpp"

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

// ThreadSanitizer knows nothing of the threads that a forked child lacks.
#ifdef SAFECF_THREAD_SANITIZER
constexpr bool kForks = false;
#else
constexpr bool kForks = true;
#endif

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

#ifdef __linux__
int threads_of_process() {
  int count = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}
#endif

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
}

void test_the_pool_serves_many_loops_with_the_threads_it_has() {
  for (int loop = 0; loop < 20'000; ++loop) CHECK(sum_of_tasks(5, 4) == 15);
#ifdef __linux__
  const int before = threads_of_process();
  for (int loop = 0; loop < 100; ++loop) CHECK(sum_of_tasks(50, 4) == 1275);
  CHECK(threads_of_process() == before);
#endif
}

void test_the_first_exception_ends_the_loop() {
  for (int repeat = 0; repeat < 100; ++repeat) {
    std::atomic<int> done{0};
    std::string caught;
    try {
      parallel_for(1'000'000, on(3), [&](int64_t task) {
        if (task == 10) throw std::runtime_error("ten");
        ++done;
      });
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    CHECK(caught == "ten");
    CHECK(done < 1'000'000);
  }
}

void test_loops_inside_loops_and_their_exceptions() {
  std::atomic<int64_t> total{0}, failed{0};
  parallel_for(8, scratch<int>(4), on(4), [&](int64_t outer, Arena arena) {
    const auto kept = arena.take<int>(4);
    for (int& value : kept) value = static_cast<int>(outer);
    try {
      parallel_for(50, scratch<int>(8), on(3), [&](int64_t inner, Arena inner_arena) {
        for (int& value : inner_arena.take<int>(8)) value = -1;
        if (outer % 2 == 1 && inner == 20) throw std::runtime_error("inner");
        total += inner;
      });
    } catch (const std::runtime_error&) {
      ++failed;
    }
    for (const int value : kept) CHECK(value == outer);
  });
  CHECK(failed == 4);
  CHECK(total >= 4 * 1225);
  bool caught = false;
  try {
    parallel_for(8, on(4), [&](int64_t) {
      parallel_for(8, on(4), [](int64_t) { throw std::logic_error("inner"); });
    });
  } catch (const std::logic_error&) {
    caught = true;
  }
  CHECK(caught);
}

void test_callers_at_the_same_time() {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller)
    callers.emplace_back([caller] {
      for (int loop = 0; loop < 500; ++loop) {
        bool caught = false;
        try {
          CHECK(sum_of_tasks(100, 1 + caller % 4) == 5050);
          parallel_for(100, on(4), [&](int64_t task) {
            if (task == loop % 100) throw caller;
          });
        } catch (const int whose) {
          CHECK(whose == caller);
          caught = true;
        }
        CHECK(caught);
      }
    });
  for (std::thread& caller : callers) caller.join();
}

void test_only_the_caller_is_asked_for_an_interrupt() {
  static std::atomic<std::thread::id> caller;
  caller = std::this_thread::get_id();
  bool caught = false;
  try {
    parallel_for(int64_t{1} << 60,
                 on(2,
                    [] {
                      CHECK(std::this_thread::get_id() == caller);
                      return true;
                    }),
                 [](int64_t) {});
  } catch (const Interrupted&) {
    caught = true;
  }
  CHECK(caught);
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
  std::string caught;
  try {
    parallel_for(300,
                 on(2,
                    [] {
                      if (child == -1) child = fork();
                      return false;
                    }),
                 [](int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  } catch (const std::runtime_error& error) {
    caught = error.what();
  }
  if (child == 0) std::_Exit(caught.find("forked") != std::string::npos ? 0 : 1);
  CHECK(child > 0 && caught.empty());
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#ifdef SAFECF_DEBUG
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
#endif

}  // namespace

int main() {
  test_every_task_runs_once_with_an_arena();
  test_the_pool_serves_many_loops_with_the_threads_it_has();
  test_the_first_exception_ends_the_loop();
  test_loops_inside_loops_and_their_exceptions();
  test_callers_at_the_same_time();
  test_only_the_caller_is_asked_for_an_interrupt();
  test_helpers_round_like_their_caller();
  if (kForks) {
    test_a_forked_child_has_a_pool_of_its_own();
    test_a_fork_while_others_are_in_loops();
    test_a_fork_inside_a_loop_is_an_error_in_the_child();
#ifdef SAFECF_DEBUG
    test_debug_builds_stop_at_a_wrong_index();
#endif
  }
  std::puts("all tests of the parallel loop passed");
}
