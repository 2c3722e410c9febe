/// What becomes of an exception that leaves a handler of an actor (reliability A8).
#pragma once

#include <caf/all.hpp>

#include <exception>
#include <string>

namespace lamella::actors {

/// Logs that the actor of that name ends by an exception, and returns the reason to end with:
/// `ec::actor_failed` with both in words.
caf::error failed_by(const char* actor, const std::exception_ptr& exception);

/// To be called first in the function that makes an actor's behaviour: an exception in one of its
/// handlers, the lack of memory among them, then ends the actor with a reason of its own, and
/// whoever watches it starts anew what it was part of.
template <class Self> void end_on_exceptions(Self* self) {
  self->set_exception_handler(
      [self](std::exception_ptr& x) -> caf::error { return failed_by(self->name(), x); });
}

} // namespace lamella::actors
