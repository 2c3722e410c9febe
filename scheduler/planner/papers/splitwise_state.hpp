/// What machines and requests of a phase-splitting cluster are doing, as simulate_splitwise() has
/// it.
#pragma once

#include "scheduler/planner/papers/splitwise_design.hpp"
#include "scheduler/prompt_route.hpp"

#include <cstdint>
#include <deque>
#include <tuple>
#include <vector>

namespace lamella::scheduler::phase_splitting {

constexpr uint32_t nowhere = UINT32_MAX;

using pool = machine_pool;

enum class phase : uint8_t { waiting, prompt, moving, decoding, done };

struct request_run {
  uint32_t prompt_machine = 0, token_machine = 0, left = 0, preemptions = 0;
  double first_token = 0;
  phase now = phase::waiting;
  bool answered = false; ///< its first token has been there
  uint32_t stamp = 0;    ///< of its way; a new one after every restart
};

/// How much a machine has to do, as the cluster's scheduler counts it.
struct machine_load {
  double pending = 0;  ///< tokens of prompts not ended and one per request that decodes (S-M05)
  double promised = 0; ///< KV tokens of all requests that were sent here
};

struct machine {
  machine(const machine_kind& what, pool begins) : kind{&what}, label{begins} {}

  const machine_kind* kind;
  machine_label label;
  std::deque<uint32_t> prompts;   ///< waiting, first come first served
  std::vector<uint32_t> decoding; ///< have their KV here, in order of arrival
  std::deque<uint32_t> waiting;   ///< for room for their KV
  std::vector<uint32_t> batch_prompts, batch_tokens;
  machine_load load;  ///< as it is
  machine_load known; ///< as the scheduler thinks: the last report, and what it sent since
  double used = 0;    ///< KV tokens taken
  bool running = false, down = false;
  uint32_t begun = 0; ///< requests of its own whose prompts have started and that have not ended
  uint32_t stamp = 0; ///< iterations of before a failure never end

  /// It is down, and nothing of what it had is left.
  void die() {
    down = true;
    running = false;
    ++stamp;
    load = known = {};
    used = 0;
    begun = 0;
    for (auto* list : {&prompts, &waiting}) list->clear();
    for (auto* list : {&decoding, &batch_prompts, &batch_tokens}) list->clear();
  }
};

struct event {
  double time;
  uint64_t order;
  enum { iteration, arrived, failure, repair, report } what;
  uint32_t subject; ///< machine, request whose KV has arrived, or failure
  uint32_t stamp = 0;
  bool operator>(const event& x) const { return std::tie(time, order) > std::tie(x.time, x.order); }
};

} // namespace lamella::scheduler::phase_splitting
