/// Messages of MASK MAKER.
#pragma once

#include "actors/protocol/actors.hpp"
#include "model/grammar/output_constraint.hpp"

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::model::constrained_answer)

namespace lamella::actors {

/// Timeout of a mask request, including the queue of all other sequences.
constexpr caf::timespan mask_timeout = std::chrono::seconds{60};

} // namespace lamella::actors
