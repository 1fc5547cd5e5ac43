#include "parallel.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "memory.hpp"

namespace safecf {
namespace {

constexpr int64_t kMostThreads = 1024;

// A loop while it runs; it lives on the stack of its caller.
class Job {
 public:
  Job(const Loop& loop, const Execution& execution) : loop_(loop), execution_(execution) {
    std::fegetenv(&floating_point_);
  }

  // Takes tasks until none is left.
  void work_as_caller() noexcept { work(execution_.interrupted); }
  void work_as_helper() noexcept {
    std::fesetenv(&floating_point_);  // rounding and subnormals as in the caller: the same bits
    work(nullptr);
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  // Guarded by the pool's mutex.
  int64_t places = 0;   // for helpers, not taken yet
  int64_t helpers = 0;  // at work
  std::condition_variable all_left;

 private:
  void work(bool (*interrupted)()) noexcept {
    try {
      ThreadScratch scratch(loop_.scratch);
      InterruptCheck check(interrupted);
      for (int64_t task; (task = next_.fetch_add(1)) < loop_.tasks;) {
        loop_.call(loop_.body, task, scratch.arena());
        check();
      }
    } catch (...) {
      const std::lock_guard lock(failure_guard_);
      if (!failure_) failure_ = std::current_exception();
      next_.store(loop_.tasks);
    }
  }

  const Loop& loop_;
  const Execution& execution_;
  std::fenv_t floating_point_;
  std::atomic<int64_t> next_{0};
  std::mutex failure_guard_;
  std::exception_ptr failure_;
};

// Threads that help with loops and sleep in between. It is never destroyed: its threads may sleep
// on when the process ends.
class Pool {
 public:
  // Lets up to `helpers` threads join the job, new ones where too few are idle.
  void open(Job& job, int64_t helpers) {
    const std::lock_guard lock(guard_);
    jobs_.push_back(&job);
    job.places = helpers;
    places_ += helpers;
    add_workers(places_ - idle_);
    for (int64_t i = 0; i < helpers; ++i) job_opened_.notify_one();
  }

  // Lets no more join, and waits for those at work.
  void close(Job& job) {
    std::unique_lock lock(guard_);
    places_ -= job.places;
    job.places = 0;
    std::erase(jobs_, &job);
    job.all_left.wait(lock, [&] { return job.helpers == 0; });
  }

 private:
  void add_workers(int64_t count) {
    sigset_t all, before;  // signals are for the process's own threads
    sigfillset(&all);
    for (const int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV}) sigdelset(&all, fault);
    if (count <= 0 || workers_ + 1 == kMostThreads || pthread_sigmask(SIG_SETMASK, &all, &before))
      return;
    try {
      for (; count > 0 && workers_ + 1 < kMostThreads; --count) {
        std::thread([this] { serve(); }).detach();
        ++workers_;
        ++idle_;
      }
    } catch (const std::exception&) {
      // the system has no more threads: go on with those that there are
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void serve() {
    std::unique_lock lock(guard_);
    for (;;) {
      job_opened_.wait(lock, [&] { return places_ > 0; });
      Job& job = **std::find_if(jobs_.begin(), jobs_.end(), [](Job* j) { return j->places > 0; });
      --idle_;
      --places_;
      --job.places;
      ++job.helpers;
      lock.unlock();
      job.work_as_helper();
      lock.lock();
      ++idle_;
      if (--job.helpers == 0) job.all_left.notify_one();
    }
  }

  std::mutex guard_;
  std::condition_variable job_opened_;
  std::vector<Job*> jobs_;
  int64_t places_ = 0;   // of all jobs
  int64_t workers_ = 0;  // threads that were started
  int64_t idle_ = 0;     // of them, at work for no job
};

std::atomic<Pool*> current_pool{nullptr};

// Only the thread that forks lives on in the child, which leaves the pool as it is to the parent.
const int fork_handler = pthread_atfork(nullptr, nullptr, [] { current_pool.store(nullptr); });

Pool& pool() {
  if (Pool* const found = current_pool.load()) return *found;
  Pool* const made = new Pool;
  Pool* first = nullptr;
  if (current_pool.compare_exchange_strong(first, made)) return *made;
  delete made;  // another caller was faster; no thread has started here
  return *first;
}

}  // namespace

int64_t Execution::num_threads() const {
  const int64_t wanted = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  return std::min(wanted, kMostThreads);
}

void run(const Loop& loop, const Execution& execution) {
  Job job(loop, execution);
  const int64_t helpers = loop.tasks > 1 ? std::min(execution.num_threads(), loop.tasks) - 1 : 0;
  if (helpers == 0) {
    job.work_as_caller();
  } else {
    Pool& helping = pool();
    helping.open(job, helpers);
    job.work_as_caller();
    // `interrupted` may run any code, a fork too; the helpers' tasks are then lost to the child
    if (current_pool.load() != &helping)
      throw std::runtime_error("the process was forked inside a parallel loop");
    helping.close(job);
  }
  job.rethrow();
}

}  // namespace safecf
