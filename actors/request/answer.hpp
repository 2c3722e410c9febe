/// The response of a request: one body, or a stream that is rendered when the socket is ready.
#pragma once

#include "actors/request/request_state.hpp"

namespace lamella::actors {

/// Sends pending output if the socket is writable: starts the stream, then sends the pieces of all
/// choices, at the end usage and the end mark; without `stream`, the whole body once all choices
/// have finished. A slow client costs only its tokens (reliability B6).
void speak(request_ptr self);

/// Opens the stream before the first token, so that a waiting client gets pings.
void open_stream(request_ptr self);

/// Sends a comment line when nothing was written for a ping interval.
void ping(request_ptr self);

/// Ends the answer with an error: as the whole answer, or as the last event of the stream, after
/// the data in flight to the socket.
void refuse(request_ptr self, const net::api_error& error);

} // namespace lamella::actors
