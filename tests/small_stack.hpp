/// Runs a piece of a test where recursion has little room.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <stdexcept>

namespace lamella::tests {

/// Less than any thread of the service has. Where every call takes more room than in a release,
/// there is more of it.
#ifdef __SANITIZE_ADDRESS__
constexpr size_t small_stack_bytes = 1024 << 10;
#else
constexpr size_t small_stack_bytes = 256 << 10;
#endif

/// Runs it on a thread with a small stack and waits; what it throws is thrown here.
inline void on_small_stack(std::function<void()> run) {
  struct job {
    std::function<void()> run;
    std::exception_ptr thrown;
  } x{std::move(run), nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, small_stack_bytes);
  pthread_t thread;
  const auto body = [](void* argument) -> void* {
    auto& job_of = *static_cast<job*>(argument);
    try {
      job_of.run();
    } catch (...) {
      job_of.thrown = std::current_exception();
    }
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, body, &x) != 0)
    throw std::runtime_error{"no thread with a small stack"};
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  if (x.thrown) std::rethrow_exception(x.thrown);
}

} // namespace lamella::tests
