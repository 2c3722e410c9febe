#include "actors/decode/prompt_placement.hpp"

#include "actors/decode/quarantine.hpp"
#include "actors/protocol/tokens.hpp"
#include "scheduler/placement.hpp"
#include "scheduler/prompt_route.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <span>

namespace lamella::actors {

namespace {

using scheduler::machine_pool;

/// Seats of prefill workers with KV of their own that decode as well: each is two workers, one for
/// prompts on that KV and its batch.
uint32_t seats_with_both(const global_scheduler_config& c) {
  return c.prompt_batches > 0 ? c.prefill_workers : 0;
}

/// The batch of such a seat, as a worker.
uint32_t batch_on_seat(const global_scheduler_config& c, uint32_t seat) {
  return c.prefill_workers + c.mixed_workers - c.prompt_batches + seat;
}

/// A seat with both has one queue. Prompts come to its own KV while it decodes nothing, and else to
/// the launches of its batch.
void join_queues(const global_scheduler_config& c, std::vector<scheduler::prompt_queue>& queues) {
  for (uint32_t i = 0; i < seats_with_both(c); ++i) {
    auto& own = queues.at(i);
    auto& batch = queues.at(batch_on_seat(c, i));
    own.pending = batch.pending += own.pending;
    own.idle = batch.idle = own.pending == 0;
    (batch.pool == machine_pool::prompt ? batch : own).down = true;
  }
}

/// Prefill workers, then replicas that decode, by number.
std::vector<scheduler::prompt_queue> queues_of(const global_scheduler_state& st) {
  std::vector<scheduler::prompt_queue> queues;
  for (const auto tokens : st.prefill_left) queues.push_back({machine_pool::prompt, tokens});
  for (const auto& [first, x] : st.unbegun) queues.at(x.worker).pending += x.tokens;
  for (uint32_t i = 0; i < queues.size(); ++i) {
    queues[i].idle = queues[i].pending == 0;
    if (i >= st.config.prefill_workers)
      queues[i].pool = st.labels.at(i - st.config.prefill_workers).now();
  }
  join_queues(st.config, queues);
  return queues;
}

uint64_t in_pool(const global_scheduler_state& st, machine_pool pool) {
  return static_cast<uint64_t>(
      std::ranges::count_if(st.labels, [&](const auto& x) { return x.now() == pool; }));
}

void tell_mixed(const global_scheduler_state& st) {
  if (st.config.metrics) st.config.metrics->set_mixed_replicas(in_pool(st, machine_pool::mixed));
}

/// The prompt goes to a replica whose own work is decoding.
void overflow(global_scheduler_state& st, const scheduler::prompt_route& to,
              const prompt_place& prompt) {
  if (st.config.metrics) st.config.metrics->prompt_overflowed();
  const auto replica = to.machine - st.config.prefill_workers;
  if (!to.joins_mixed || !st.labels.at(replica).join_mixed(prompt.now_s)) return;
  spdlog::debug("replica takes prompts that overflow replica={} prompt_tokens={}", replica,
                prompt.tokens);
  tell_mixed(st);
}

/// Whether that machine decodes when nobody overflows.
bool is_for_tokens(const global_scheduler_state& st, uint32_t machine) {
  return machine >= st.config.prefill_workers
         && st.labels.at(machine - st.config.prefill_workers).home() == machine_pool::token;
}

/// Where no prompt overflows: the machine for prompts with the shortest queue, one that is mixed
/// only where all are. Where all have changed their pool, the batch of its sequences computes it.
uint32_t worker_for_prompts(std::span<const scheduler::prompt_queue> queues, uint32_t turn,
                            const prompt_place& prompt) {
  for (const auto pool : {machine_pool::prompt, machine_pool::mixed})
    if (const auto best = scheduler::shortest_queue(queues, turn, pool)) return *best;
  return prompt.batch;
}

/// Where launches are mixed, each batch is a machine of its own.
scheduler::machine_label* machine_of(global_scheduler_state& st, uint32_t batch) {
  return st.config.mixed_launches && batch < st.labels.size() ? &st.labels[batch] : nullptr;
}

/// The least loaded batch of the machines for which `may` holds.
template <class May>
std::optional<uint32_t> batch_among(global_scheduler_state& st, std::vector<uint64_t> load,
                                    uint32_t choices, const May& may) {
  const auto seats = st.config.seats_per_batch;
  for (uint32_t j = 0; j < load.size(); ++j)
    if (const auto* x = machine_of(st, j); x != nullptr && !may(*x)) load[j] = seats;
  return scheduler::least_loaded(load, seats, choices);
}

/// Someone has to decode.
bool may_be_repurposed(const global_scheduler_state& st, const scheduler::machine_label& x) {
  return x.home() != machine_pool::token || std::ranges::count_if(st.labels, [](const auto& m) {
                                              return m.home() == machine_pool::token;
                                            }) > 1;
}

} // namespace

std::vector<scheduler::machine_label> labels_of(const global_scheduler_config& c) {
  std::vector<scheduler::machine_label> labels(c.mixed_workers - c.prompt_batches,
                                               scheduler::machine_label{machine_pool::token});
  labels.resize(c.mixed_workers, scheduler::machine_label{machine_pool::prompt});
  return labels;
}

uint32_t worker_of(const global_scheduler_state& st, stream_id stream) {
  const auto number = static_cast<uint32_t>(stream);
  return number < scheduler::prefill_streams ? st.config.prefill_workers + number
                                             : number - scheduler::prefill_streams;
}

uint32_t prefill_worker_for(global_scheduler_state& st, const prompt_place& prompt) {
  const auto& c = st.config;
  const bool anywhere = c.prompt_batches > 0 && c.prefill_workers == 0; // all KV is at the shards
  const bool on_replicas = prompt.suffix && c.mixed_workers > 0 && !anywhere;
  if (c.mixed_launches && !anywhere && (on_replicas || c.prefill_workers == 0))
    return c.prefill_workers + prompt.batch;
  const auto turn = st.next_prefill++;
  const auto base = on_replicas ? c.prefill_workers : 0;
  const auto count = on_replicas || anywhere ? c.mixed_workers : c.prefill_workers;
  if (const auto side = worker_on_side(st, prompt.first, base, count, turn)) return *side;
  const auto queues = queues_of(st);
  const auto any = [](const auto&) { return true; };
  if (on_replicas)
    return base + scheduler::shortest_queue(std::span{queues}.subspan(base), turn, any).value();
  if (c.mixed_workers == 0 || c.overflow_tokens == 0)
    return worker_for_prompts(queues, turn, prompt);
  const auto to = scheduler::route_prompt(queues, prompt.tokens, c.overflow_tokens, turn);
  if (!to) return scheduler::shortest_queue(queues, turn, any).value(); // all are mixed and full
  if (is_for_tokens(st, to->machine)) overflow(st, *to, prompt);
  return to->machine;
}

std::optional<uint32_t> batch_for(global_scheduler_state& st, const std::vector<uint64_t>& load,
                                  uint32_t choices) {
  const auto decodes = [](const auto& x) { return x.home() != machine_pool::prompt; };
  const auto mixed = [](const auto& x) { return x.now() != machine_pool::prompt; };
  const auto any = [](const auto&) { return true; };
  auto batch = batch_among(st, load, choices, decodes);
  if (!batch) batch = batch_among(st, load, choices, mixed);
  return batch ? batch : batch_among(st, load, choices, any);
}

void tokens_come(global_scheduler_state& st, uint32_t batch, uint32_t sequences, double now_s) {
  auto* x = machine_of(st, batch);
  if (x == nullptr || x->home() != machine_pool::prompt) return;
  if (st.config.metrics) st.config.metrics->sequences_overflowed(sequences);
  if (!x->join_mixed(now_s)) return;
  spdlog::debug("replica for prompts takes sequences that overflow replica={}", batch);
  tell_mixed(st);
}

void sort_machines(global_scheduler_state& st, double now_s) {
  if (in_pool(st, machine_pool::mixed) == 0) return;
  const auto queues = queues_of(st);
  for (uint32_t i = 0; i < st.labels.size(); ++i) {
    auto& x = st.labels[i];
    const bool others = x.home() == machine_pool::token
                            ? !queues[st.config.prefill_workers + i].idle
                            : st.seats.at(i) > 0;
    if (!others) x.leave_mixed();
    if (may_be_repurposed(st, x) && x.repurpose(now_s, st.config.repurpose_s))
      spdlog::info("replica changes its pool replica={} pool={}", i,
                   x.home() == machine_pool::prompt ? "prompt" : "token");
  }
  tell_mixed(st);
}

} // namespace lamella::actors
