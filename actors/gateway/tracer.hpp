/// TRACER: has all workers record for some seconds, and answers with what they saw.
#pragma once

#include "actors/gateway/trace_audience.hpp"
#include "actors/gateway/trace_text.hpp"
#include "actors/protocol/actors.hpp"
#include "actors/request/aside.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace lamella::actors {

/// Spans of all workers in one answer.
constexpr uint32_t trace_spans_max = 131'072;

struct tracer_config {
  caf::actor_addr owner; ///< with it the recording ends
  membership_actor members;
  aside_actor aside; ///< writes the answer
  std::shared_ptr<trace_audience> audience;
  exchange_ptr alone; ///< its only asker, without whom nobody wants it; null: there may be more
  std::shared_ptr<bool> token; ///< alive until the answer is written
  uint64_t id = 0;             ///< of the recording
  std::chrono::milliseconds length{0};
  recording empty; ///< with what is known of the service
};

struct tracer_state {
  tracer_config config;
  recording result;
  trace_begun here; ///< identity of this host
  size_t left = 0;  ///< workers that have not answered
  bool fetching = false, ended = false;
  const char* name = "tracer";
};

/// Lives until one recording has its answer, or its asker or its owner is gone. A worker that does
/// not answer in time is named in the answer, with the reason.
tracer_actor::behavior_type tracer(tracer_actor::stateful_pointer<tracer_state> self,
                                   tracer_config config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::tracer_config)
