/// Messages of MASK MAKER.
#pragma once

#include "actors/protocol/actors.hpp"
#include "model/grammar/output_constraint.hpp"

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::model::constrained_answer)

namespace lamella::actors {

/// Answered when the mask is computed. Requests are answered one after the other, in order of
/// arrival; a sender has at most one open request per sequence.
using mask_maker_actor =
    caf::typed_actor<caf::replies_to<model::constrained_answer>::with<model::constrained_answer>>;

/// Timeout of a mask request, including the queue of all other sequences.
constexpr caf::timespan mask_patience = std::chrono::seconds{60};

} // namespace lamella::actors
