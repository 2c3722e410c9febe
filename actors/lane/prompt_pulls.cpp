#include "actors/lane/prompt_pulls.hpp"

#include "actors/device/shard_pull.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/parity.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/pulls.hpp"
#include "actors/shared/explain.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using pull_state = prompt_part::pull_state;

/// Both sides end by their own deadlines; this only outlives them.
constexpr caf::timespan pull_timeout = pull_deadline + 2 * answer_timeout;

/// The last answer has come: the rows are complete, or their prompts must run again.
void end(lane_ptr self, uint64_t number, pulls_ended then) {
  auto& st = self->state;
  const auto x = std::move(st.prompts.pulls.extract(number).mapped());
  const auto took = self->clock().now() - x.began;
  if (!x.failure && x.iteration == 0) st.prompts.pull_timeout.add(x.bytes, took);
  if (!x.failure && st.config.target.metrics)
    st.config.target.metrics->kv_pulled(x.first->bytes,
                                        std::chrono::duration<double>(took).count());
  for (const auto sequence : x.jobs) {
    auto& j = st.prompts.jobs.at(sequence);
    --j.pulls;
    if (x.failure && !j.failure) j.failure = x.failure;
  }
  for (const auto sequence : x.jobs)
    if (const auto found = st.prompts.jobs.find(sequence);
        found != st.prompts.jobs.end() && found->second.pulls == 0)
      then(self, sequence);
}

void on_moved(lane_ptr self, uint64_t number, const kv_moved& answer, pulls_ended then) {
  if (self->state.cut) return;
  auto& x = self->state.prompts.pulls.at(number);
  if (!x.first) {
    x.first = answer;
  } else if (x.first->digest != answer.digest || x.first->bytes != answer.bytes) {
    spdlog::warn("KV transfer digests differ pull={} shard={} bytes={}/{}", number, x.shard,
                 x.first->bytes, answer.bytes);
    if (const auto& metrics = self->state.config.target.metrics)
      metrics->kv_damaged(net::kv_damage::transfer);
    x.failure = caf::make_error(ec::rows_differ);
  }
  if (++x.answers == 2) end(self, number, then);
}

void on_error(lane_ptr self, uint64_t number, caf::error& reason, pulls_ended then) {
  if (peer_lost(reason)) {
    self->quit(peer_gone());
    return;
  }
  auto& st = self->state;
  if (st.cut) return;
  if (reason == ec::link_cut) {
    st.cut = true;
    self->delayed_send(
        self, cut_timeout,
        iteration_failed{st.config.target.stream, number, attempt_of_pulls, true, cut_reason});
    return;
  }
  auto& x = st.prompts.pulls.at(number);
  if (!x.failure) {
    spdlog::warn("pull aborted pull={} shard={} reason=\"{}\"", number, x.shard,
                 explain(self->system(), reason));
    x.failure = std::move(reason);
    if (number > st.prompts.pulls_cancelled) cancel_pulls(self); // or the other side waits for long
  }
  if (++x.answers == 2) end(self, number, then);
}

/// Its rows are there: from now on only lost frames can hold it for long.
void limit(lane_ptr self, uint64_t number, pull_state& x) {
  auto& st = self->state;
  uint32_t failures = 0;
  for (const auto sequence : x.jobs)
    failures = std::max(failures, st.prompts.jobs.at(sequence).failures);
  self->delayed_send(
      self, caf::timespan{st.prompts.pull_timeout.next(x.bytes, failures)},
      iteration_failed{st.config.target.stream, number, attempt_of_late_pull, true, {}});
}

void begin_pull(lane_ptr self, kv_offer offer, kv_pull pull, std::vector<sequence_id> jobs,
                pulls_ended then) {
  auto& st = self->state;
  const auto& own = *st.config.prompts->own;
  const auto number = offer.number = pull.number = ++st.prompts.pull_number;
  const auto shard = offer.shard;
  offer.stream = pull.stream = st.config.target.stream;
  offer.epoch = pull.epoch = st.config.target.epoch;
  for (const auto sequence : jobs) {
    auto& j = st.prompts.jobs.at(sequence);
    ++j.pulls;
    j.newest[shard] = number;
  }
  const auto bytes = scheduler::length_of(pull.runs) * st.config.prompts->token_bytes
                     / own.layout.cells.at(own.layout.cell_of(shard)).members;
  auto& x = st.prompts.pulls[number] = {shard, std::move(jobs),     std::nullopt, 0,
                                        {},    self->clock().now(), bytes,        offer.iteration};
  if (x.iteration == 0) limit(self, number, x);
  const auto moved = [=](const kv_moved& answer) { on_moved(self, number, answer, then); };
  const auto failed = [=](caf::error& reason) { on_error(self, number, reason, then); };
  self->request(own.source, pull_timeout, std::move(offer)).then(moved, failed);
  self->request(own.shards[shard], pull_timeout, std::move(pull)).then(moved, failed);
}

} // namespace

void begin_pulls(lane_ptr self, std::span<const prompt_rows> rows, uint64_t iteration,
                 pulls_ended then) {
  auto& st = self->state;
  const auto& own = *st.config.prompts->own;
  for (uint32_t shard = 0; shard < own.shards.size(); ++shard) {
    kv_offer offer;
    kv_pull pull;
    std::vector<sequence_id> jobs;
    for (const auto& x : rows) {
      const auto& j = st.prompts.jobs.at(x.sequence);
      if (x.count == 0 || j.what.member != own.layout.cell_of(shard)) continue;
      scheduler::append_positions(offer.runs, j.slots, x.first, x.count);
      scheduler::append_positions(pull.runs, j.what.runs, x.first, x.count);
      jobs.push_back(x.sequence);
    }
    if (jobs.empty()) continue;
    offer.shard = shard;
    offer.iteration = iteration;
    begin_pull(self, std::move(offer), std::move(pull), std::move(jobs), then);
  }
}

void await_pulls(lane_ptr self, uint64_t iteration) {
  for (auto& [number, x] : self->state.prompts.pulls) {
    if (x.iteration != iteration) continue;
    x.iteration = 0;
    x.began = self->clock().now();
    limit(self, number, x);
  }
}

void on_late_pull(lane_ptr self, uint64_t number) {
  auto& st = self->state;
  const auto found = st.prompts.pulls.find(number);
  if (st.cut || found == st.prompts.pulls.end() || found->second.failure) return;
  auto& x = found->second;
  const auto waited =
      std::chrono::duration_cast<std::chrono::milliseconds>(self->clock().now() - x.began);
  x.failure = caf::make_error(ec::deadline, fmt::format("shard {} has not pulled {} bytes in {} ms",
                                                        x.shard, x.bytes, waited.count()));
  spdlog::warn("pull aborted pull={} shard={} reason=\"{}\"", number, x.shard,
               explain(self->system(), x.failure));
  if (number > st.prompts.pulls_cancelled) cancel_pulls(self);
}

void tell_of_pulls(lane_ptr self, const prefill& what, bool complete) {
  const auto& c = self->state.config;
  if (!c.prompts->own || !c.prompts->own->layout.has_parity(what.member)) return;
  const auto tokens = static_cast<uint32_t>(what.tokens.size());
  self->send(c.target.allocator,
             kv_pulled{c.target.epoch, what.first, scheduler::prefix(what.runs, tokens), complete});
}

void cancel_pulls(lane_ptr self) {
  auto& st = self->state;
  if (st.prompts.pulls.empty()) return;
  st.prompts.pulls_cancelled = st.prompts.pull_number;
  const kv_pull_cancel order{st.config.target.stream};
  self->send(st.config.prompts->own->source, order);
  for (const auto& shard : st.config.prompts->own->shards) self->send(shard, order);
}

void free_slots(lane_state& st, prompt_part::job& j) {
  if (j.slots.empty()) return;
  st.prompts.slots->give_back(j.slots);
  j.slots.clear();
  for (const auto& [shard, number] : j.newest)
    st.prompts.fences[shard] = std::max(st.prompts.fences[shard], number);
}

} // namespace lamella::actors
