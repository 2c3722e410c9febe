/// A token that was computed again must be the token it was (reliability A4).
#pragma once

#include "actors/request/request.hpp"

namespace lamella::actors {

/// Compares a token of a position that has one. Another one than is committed there is counted
/// (`lamella_divergence_total`) and logged as an error; what is committed stands, and nobody else
/// may have the K and V of the sequence. `by` is who has computed it, for the log.
void compare_with_committed(request_ptr self, size_t index, uint32_t position, token_id again,
                            const char* by);

} // namespace lamella::actors
