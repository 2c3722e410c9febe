/// Parsing of the HTTP request body into the state of the request actor.
#pragma once

#include "actors/request/request_state.hpp"

namespace lamella::actors {

/// Parses the body in ASIDE and compiles its response format; the request then gets a
/// request_reading. Bodies of disconnected clients are skipped.
void begin_reading(request_ptr self);

/// Initialises the state from the parsed body: one sequence per prompt and choice, the head of the
/// answer, and a seed where none was given.
void prepare(request_state& st, request_reading&& x);

} // namespace lamella::actors
