/// The way of a prompt to the batch that decodes it: admission, prefill, first token, seat.
#pragma once

#include "actors/request/request_end.hpp"

namespace lamella::actors {

/// Asks to admit the sequences [first, first + choices): all choices of a prompt that has not been
/// prefilled, or one sequence with the tokens it has (`resumed`: it was admitted before). What
/// follows goes by itself: the first tokens are taken, and each sequence joins its batch, unless
/// that token was its last.
void ask_admission(request_ptr self, size_t first, uint32_t choices, bool resumed);

/// Takes a token as the next one of its sequence, and its latency as a number. Nothing when the
/// sequence is over.
void accept_token(request_ptr self, size_t index, const sampled_token& drawn, finish reason);

} // namespace lamella::actors
