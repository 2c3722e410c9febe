/// Exceptions that leave a handler of an actor become exit reasons (reliability A8).
#pragma once

#include <caf/all.hpp>

#include <exception>
#include <string>

namespace lamella::actors {

/// Logs that the actor of that name failed with an exception, and returns its exit reason:
/// `ec::actor_failed` with both in words.
caf::error failed_by(const char* actor, const std::exception_ptr& exception);

/// Call this first in the function that creates an actor's behaviour: an exception in one of its
/// handlers, std::bad_alloc included, then terminates the actor with `ec::actor_failed`, and its
/// supervisor restarts what it was part of.
template <class Self> void end_on_exceptions(Self* self) {
  self->set_exception_handler(
      [self](std::exception_ptr& x) -> caf::error { return failed_by(self->name(), x); });
}

} // namespace lamella::actors
