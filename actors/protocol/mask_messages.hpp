/// What MASK MAKER is asked.
#pragma once

#include "actors/protocol/actors.hpp"
#include "model/grammar/output_constraint.hpp"

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::model::constrained_answer)

namespace lamella::actors {

/// Answers when the mask is known. One answer after the other, in the order in which they came:
/// whoever asks has no more than one question per sequence.
using mask_maker_actor =
    caf::typed_actor<caf::replies_to<model::constrained_answer>::with<model::constrained_answer>>;

/// How long one may wait for a mask, behind those of all other sequences.
constexpr caf::timespan mask_patience = std::chrono::seconds{60};

} // namespace lamella::actors
