/// Runs a trace on the pipeline, without HTTP, for comparison with the simulation.
#pragma once

#include "actors/node/node.hpp"
#include "scheduler/planner/simulator.hpp"

#include <chrono>
#include <cstdint>

namespace lamella::cli {

/// Sends every request at its arrival (all at once where `load` is saturated) as the actor of an
/// HTTP request would, prompts of random tokens, answers of exactly the trace's length; what is
/// preempted asks again with its tokens. Fills of the result what a client can see: seconds,
/// tokens, requests, preemptions, tbt, ttft, e2e, tokens_per_s, and mean_batch as the requests
/// between first and last token. The trace must fit the admission queue. Throws std::runtime_error
/// when a request fails or `patience` is over. `first_request` is the first id of its requests; no
/// two runs of one node may share any.
scheduler::simulation_result replay(actors::node& n, const scheduler::request_trace& trace,
                                    scheduler::load_kind load, uint64_t first_request,
                                    std::chrono::seconds patience);

} // namespace lamella::cli
