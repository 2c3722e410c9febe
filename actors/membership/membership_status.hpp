/// Who sits where and does what, as `lamella status` shows it.
#pragma once

#include "actors/membership/membership.hpp"

namespace lamella::actors {

/// Asks the workers whom they talk to; those that do not answer within a second are told of as
/// before.
caf::result<system_status> answer_status(membership_self::stateful_pointer<membership_state> self);

} // namespace lamella::actors
