// Python's threads: the GIL and signals.
#include <pthread.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "arrays.hpp"

namespace safecf::python {
namespace {

// Signals reach Python's main thread, which is the process's.
bool is_main_thread() {
#ifdef __linux__
  return syscall(SYS_gettid) == getpid();
#else
  return pthread_main_np() != 0;
#endif
}

}  // namespace

WithoutGil::~WithoutGil() {
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {  // pthread_exit unwinds the stack; the handler may not end
    for (;;) pause();
  }
}

bool interrupted() {
  if (!is_main_thread()) return false;
  const nb::gil_scoped_acquire hold;
  return PyErr_CheckSignals() != 0;
}

}  // namespace safecf::python
