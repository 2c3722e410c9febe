#include "actors/decode/prompt_placement.hpp"

#include "actors/decode/quarantine.hpp"
#include "scheduler/prompt_route.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using scheduler::machine_pool;

/// Prefill workers, then replicas that decode, by number.
std::vector<scheduler::prompt_queue> queues_of(const global_scheduler_state& st) {
  std::vector<scheduler::prompt_queue> queues;
  for (const auto tokens : st.prefill_left) queues.push_back({machine_pool::prompt, tokens});
  for (const auto& [first, x] : st.unbegun) queues.at(x.worker).pending += x.tokens;
  for (uint32_t i = 0; i < queues.size(); ++i) {
    queues[i].idle = queues[i].pending == 0;
    if (i >= st.config.prefill_workers)
      queues[i].pool = st.mixed.contains(i) ? machine_pool::mixed : machine_pool::token;
  }
  return queues;
}

void tell_mixed(const global_scheduler_state& st) {
  if (st.config.metrics) st.config.metrics->set_mixed_replicas(st.mixed.size());
}

/// The prompt goes to a replica that decodes.
void overflow(global_scheduler_state& st, const scheduler::prompt_route& to, uint64_t tokens) {
  if (st.config.metrics) st.config.metrics->prompt_overflowed();
  if (!to.joins_mixed) return;
  st.mixed.insert(to.machine);
  spdlog::debug("replica takes prompts that overflow replica={} prompt_tokens={}",
                to.machine - st.config.prefill_workers, tokens);
  tell_mixed(st);
}

} // namespace

uint32_t prefill_worker_for(global_scheduler_state& st, sequence_id first, uint64_t tokens,
                            bool suffix) {
  const auto& c = st.config;
  const auto turn = st.next_prefill++;
  const bool on_replicas = suffix && c.mixed_workers > 0;
  const auto base = on_replicas ? c.prefill_workers : 0;
  const auto count = on_replicas ? c.mixed_workers : c.prefill_workers;
  if (const auto side = worker_on_side(st, first, base, count, turn)) return *side;
  const auto queues = queues_of(st);
  const auto shortest = [&](const auto& may) {
    return scheduler::shortest_queue(queues, turn, may).value();
  };
  if (on_replicas) return shortest([](const auto& x) { return x.pool != machine_pool::prompt; });
  if (c.mixed_workers == 0 || c.overflow_tokens == 0) return shortest(machine_pool::prompt);
  const auto to = scheduler::route_prompt(queues, tokens, c.overflow_tokens, turn);
  if (!to) return shortest([](const auto&) { return true; }); // all are mixed and full
  if (to->machine >= c.prefill_workers) overflow(st, *to, tokens);
  return to->machine;
}

void leave_mixed_pool(global_scheduler_state& st) {
  if (st.mixed.empty()) return;
  const auto queues = queues_of(st);
  if (std::erase_if(st.mixed, [&](uint32_t i) { return queues.at(i).idle; }) > 0) tell_mixed(st);
}

} // namespace lamella::actors
