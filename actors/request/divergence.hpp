/// A recomputed token must equal the committed one (reliability A4).
#pragma once

#include "actors/protocol/values.hpp"
#include "actors/request/request_state.hpp"

namespace lamella::actors {

/// Compares a recomputed token with the committed one of its position. A different one is counted
/// (`lamella_divergence_total`) and logged as an error; the committed token stands, and the KV of
/// the sequence is not shared. `by`: where it was computed, for the log.
void compare_with_committed(request_ptr self, size_t index, uint32_t position, token_id again,
                            const char* by);

} // namespace lamella::actors
