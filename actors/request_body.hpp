/// What a client asked for: the body of its HTTP request as the state of the request actor.
#pragma once

#include "actors/request.hpp"

namespace lamella::actors {

/// Everything that can be refused is refused here, before any device has worked: parses and checks
/// the body, makes the prompts' tokens and bounds the answer. Throws net::api_error.
void read_body(request_state& st);

/// One sequence per prompt and choice, the head of the answer, and the seed where none was given.
/// After read_body().
void prepare(request_state& st);

} // namespace lamella::actors
