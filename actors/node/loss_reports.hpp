/// Who is told when MEMBERSHIP loses a worker, and when one joins or serves.
#pragma once

#include "actors/node/keeper_line.hpp"
#include "actors/protocol/actors.hpp"
#include "actors/shared/suspect_board.hpp"

#include <memory>

namespace lamella::actors {

struct membership_config;

struct loss_listeners {
  std::shared_ptr<suspect_board> suspects;
  std::shared_ptr<keeper_line> keeper;
  own_seats_actor own; ///< null where this process has no seats
};

/// Sets the callbacks of MEMBERSHIP. Of WORKERs of this process OWN SEATS is told, of those in
/// child processes their keeper, and of those of other hosts nobody else knows how they ended.
void tell_losses(membership_config& m, loss_listeners to);

} // namespace lamella::actors
