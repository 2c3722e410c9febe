/// What a child of a supervisor is.
#pragma once

#include <string>

namespace lamella::actors {

struct child_facts {
  std::string name; ///< of its class
  std::string role; ///< model, attention or prefill; may be empty
};

} // namespace lamella::actors
