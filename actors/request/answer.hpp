/// How a request speaks to its client: one body, or a stream that is rendered when the socket is
/// ready.
#pragma once

#include "actors/request/request.hpp"

namespace lamella::actors {

/// Sends what there is to send, if the socket can take it: starts the stream, then all choices'
/// pieces, at the end usage and the end mark; without `stream`, the whole body once all choices are
/// over. Everything a slow reader costs is its tokens (reliability B6).
void speak(request_ptr self);

/// Opens the stream before the first token, so that a waiting client gets pings.
void open_stream(request_ptr self);

/// A comment line, when nothing was written for a ping interval.
void ping(request_ptr self);

/// Ends the answer with an error: as the whole answer, or as the last event of the stream, behind
/// what is on its way to the socket.
void refuse(request_ptr self, const net::api_error& error);

/// Tokens counted so far: prompts once, whatever the number of choices.
net::usage_counts usage_of(const request_state& st);

} // namespace lamella::actors
