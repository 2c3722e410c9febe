/// The way of a prompt to the batch that decodes it: admission, prefill, first token, seat.
#pragma once

#include "actors/request/request_end.hpp"

namespace lamella::actors {

/// Asks to admit the sequences [first, first + choices): all choices of a prompt without prefill,
/// or one sequence with its tokens (`resumed`: it was admitted before). The rest is automatic: the
/// first tokens are committed, and each sequence joins its batch unless that token was its last.
void ask_admission(request_ptr self, size_t first, uint32_t choices, bool resumed);

/// Whether the token that prefill has sampled is the last one of its sequence. A batch tells this
/// of those that it samples.
finish reason_of_first(const request_state& st, size_t index, const sampled_token& drawn);

/// Commits a token as the next one of its sequence, and records its latency. No effect when the
/// sequence has finished.
void accept_token(request_ptr self, size_t index, const sampled_token& drawn, finish reason);

} // namespace lamella::actors
