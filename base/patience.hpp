/// Threads that leave the processors to others.
#pragma once

#include <algorithm>
#include <cerrno>
#include <exception>
#include <thread>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lamella {

/// Of patient threads: a tenth of what others get where both have something to do.
constexpr int patient_nice = 10;

/// Lowers the priority of the calling thread, if it is higher, and of threads that it starts later.
/// There is no way back without privileges.
inline void be_patient() {
  const auto me = static_cast<id_t>(syscall(SYS_gettid));
  errno = 0;
  const auto now = getpriority(PRIO_PROCESS, me);
  if (errno == 0 && now < patient_nice) setpriority(PRIO_PROCESS, me, patient_nice);
}

/// Calls f in a patient thread and waits for its end. Throws what f throws, and std::system_error
/// where there is no thread.
template <class F> void patiently(F&& f) {
  std::exception_ptr thrown;
  std::thread{[&] {
    be_patient();
    try {
      f();
    } catch (...) {
      thrown = std::current_exception();
    }
  }}.join();
  if (thrown) std::rethrow_exception(thrown);
}

} // namespace lamella
