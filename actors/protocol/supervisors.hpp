/// What supervisors keep, and how often they may restart it.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::actors {

/// Restart budget of a supervisor.
struct restart_budget {
  uint32_t used = 0, allowed = 0, window_s = 0; ///< allowed is 0: no restarts
};

/// A child of a supervisor, or several of a kind.
struct child_status {
  std::string name, role; ///< role: of its worker; may be empty
  uint32_t count = 1;
  restart_budget restarts{}; ///< of the child alone, where each has its own
};

/// One supervisor and its children; at most `children_told_max` of them.
struct supervisor_status {
  std::string name, strategy; ///< none, one_for_one or one_for_all
  restart_budget restarts{};
  std::vector<child_status> children;
  uint64_t more = 0; ///< children that are not listed
};

constexpr size_t children_told_max = 64;

} // namespace lamella::actors

// clang-format off
#define LAMELLA_SUPERVISORS_MESSAGES(x) x(supervisor_status)
// clang-format on
LAMELLA_PART(restart_budget)
LAMELLA_PART(child_status)
LAMELLA_SUPERVISORS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
