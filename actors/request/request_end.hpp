/// The end of a request: its error, its one log line and numbers, and what it gives back.
#pragma once

#include "actors/request/answer.hpp"

#include <exception>
#include <string>

namespace lamella::actors {

/// Refuses with `error`, unless the request was answered: ends what runs for it and counts it.
void fail(request_ptr self, const net::api_error& error,
          net::request_outcome outcome = net::request_outcome::error);

/// Takes a step of the request; one that throws ends the request with an internal error and not its
/// actor, which still owes others what it holds (reliability A2, request actor). Answers whether
/// the step was taken whole.
template <class Step> bool or_fail(request_ptr self, const Step& step) {
  try {
    step();
    return true;
  } catch (const std::exception& error) {
    fail(self, net::internal_error(error.what()));
    return false;
  }
}

/// The same for a request that ends the workers that serve it; the log gets a digest of it.
void fail_poisoned(request_ptr self);

/// Logs the one line per request and counts its numbers. To be called once, before the client can
/// read the end of its answer: who asks for the numbers then finds the request in them.
void report(request_ptr self, net::request_outcome outcome, int status, const std::string& code);

/// Has the batch that runs the sequence give up its seat; `tell`: it steps back, and the request
/// hears of it.
void leave_batch(request_ptr self, size_t index, bool tell = false);

/// Stops everything that still runs for this request. Slots held by a prefill are given back when
/// it has answered; a batch gives back by itself.
void stop_work(request_ptr self);

/// The sequence is over and no batch holds it: its slots and its place go back.
void give_back(request_ptr self, size_t index);

/// Sends what there is to send; ends the request when that was the last of it and nothing is owed.
void speak_and_finish(request_ptr self);

/// Quits when nothing is owed to anybody: all sequences over and all questions answered.
void quit_if_idle(request_ptr self);

} // namespace lamella::actors
