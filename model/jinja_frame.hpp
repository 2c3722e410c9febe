/// The guard of the native stack, for the two halves of the interpreter.
#pragma once

#include "model/jinja_interpreter.hpp"

namespace lamella::model::jinja {

/// Held by every nested evaluation. A template of long chains or deep calls ends with an error here
/// long before the thread's stack does: 1,500 levels take less than 1 MiB.
struct interpreter::frame {
  explicit frame(interpreter& i) : owner{i} {
    if (++owner.depth_ > 1500) owner.heap_.fail_limit("the template is nested too deeply");
  }
  ~frame() { --owner.depth_; }
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;

  interpreter& owner;
};

} // namespace lamella::model::jinja
