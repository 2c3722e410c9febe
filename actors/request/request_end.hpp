/// The end of a request: its error, and the release of its resources.
#pragma once

#include "actors/request/request_state.hpp"

#include <exception>

namespace lamella::actors {

/// Fails the request with `error` unless it was answered: stops its sequences and counts it.
void fail(request_ptr self, const net::api_error& error, net::request_outcome outcome);

/// The same, counted as rejected where the client is at fault (status below 500), else as an error.
void fail(request_ptr self, const net::api_error& error);

/// Takes a step of the request; one that throws ends the request with an internal error and not its
/// actor, which still owes others what it holds (reliability A2, request actor). Answers whether
/// the step was taken whole. Its note tells how it goes behind the step.
template <class Step> bool or_fail(request_ptr self, const Step& step) {
  bool whole = true;
  try {
    step();
  } catch (const std::exception& error) {
    fail(self, net::internal_error(error.what()));
    whole = false;
  }
  note_progress(self->state);
  return whole;
}

/// The same for a poison request; a digest of its tokens is logged.
void fail_poisoned(request_ptr self);

/// Removes the sequence from its batch; `tell`: it yields, and the request is notified.
void leave_batch(request_ptr self, size_t index, bool tell = false);

/// Stops everything that still runs for this request. Slots held by a prefill are freed when it
/// replies; a batch frees slots itself.
void stop_work(request_ptr self);

/// The sequence has finished and is in no batch: its slots and its place are freed.
void give_back(request_ptr self, size_t index);

/// Sends pending output; ends the request when that was the last of it and no reply is outstanding.
void speak_and_finish(request_ptr self);

/// Terminates when all sequences have finished and no reply is outstanding.
void quit_if_idle(request_ptr self);

} // namespace lamella::actors
