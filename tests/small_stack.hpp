/// Work on a thread with a small stack, as the threads of actors may have: recursion that the input
/// decides ends there at once.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <stdexcept>

namespace lamella::tests {

/// Runs `work` on a stack of so many bytes, waits for it, and throws on what it throws.
inline void on_stack_of(size_t bytes, const std::function<void()>& work) {
  struct job {
    const std::function<void()>& work;
    std::exception_ptr error;
  } todo{work, nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t thread;
  const auto run = [](void* x) -> void* {
    auto& j = *static_cast<job*>(x);
    try {
      j.work();
    } catch (...) {
      j.error = std::current_exception();
    }
    return nullptr;
  };
  if (pthread_attr_setstacksize(&attributes, bytes) != 0
      || pthread_create(&thread, &attributes, run, &todo) != 0)
    throw std::runtime_error("no thread with a stack of that size");
  pthread_attr_destroy(&attributes);
  pthread_join(thread, nullptr);
  if (todo.error) std::rethrow_exception(todo.error);
}

} // namespace lamella::tests
