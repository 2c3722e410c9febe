/// What a client asked for: the body of its HTTP request as the state of the request actor.
#pragma once

#include "actors/request/request.hpp"

namespace lamella::actors {

/// Has the body read beside the actors, the format of the output compiled with it; the request gets
/// a request_reading when that is done. Nothing is read for a client that has gone meanwhile.
void begin_reading(request_ptr self);

/// Takes what was read into the state: one sequence per prompt and choice, the head of the answer,
/// and the seed where none was given.
void prepare(request_state& st, request_reading&& x);

} // namespace lamella::actors
