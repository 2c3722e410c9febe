#include "actors/lane/lane_prompts.hpp"

#include "actors/lane/lane_launch.hpp"
#include "actors/lane/lane_pump.hpp"
#include "actors/lane/prompt_pulls.hpp"
#include "actors/lane/prompt_rebuilds.hpp"
#include "actors/protocol/explain.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using job = prompt_part::job;
using pieces_of_prompts = std::vector<scheduler::prefill_piece>;

/// It computes no more: its seat is free from the next launch on.
void leave_seat(lane_ptr self, sequence_id first) {
  auto& st = self->state;
  auto& j = st.prompts.jobs.at(first);
  st.prompts.plan->remove(first);
  if (j.seat) st.tokens.batch.table().leave(*j.seat);
  j.seat.reset();
  free_slots(st, j);
}

/// Puts a job where its turn is; `again`: it has had it and failed.
void enqueue(lane_ptr self, sequence_id first, bool again) {
  auto& part = self->state.prompts;
  const auto& j = part.jobs.at(first);
  const auto tokens = static_cast<uint32_t>(j.what.tokens.size());
  if (j.what.rebuild)
    part.plan->add(scheduler::rebuild_entry{first, tokens, j.came, j.deadline, j.what.cached});
  else if (again)
    part.plan->add_first(first, tokens, j.what.cached, j.came, j.what.scored > 0);
  else
    part.plan->add(first, tokens, j.what.cached, j.came, j.what.scored > 0);
}

bool has(const pieces_of_prompts& pieces, sequence_id first) {
  return std::any_of(pieces.begin(), pieces.end(),
                     [&](const auto& p) { return p.sequence == first; });
}

/// An aborted iteration may still run on a device, until the next attempt has ended.
bool runs(const lane_state& st, sequence_id first) {
  return has(st.prompts.again, first)
         || std::any_of(st.line.flights().begin(), st.line.flights().end(),
                        [&](const auto& x) { return has(x.pieces(), first); });
}

/// Answers a job that is over.
void answer(lane_ptr self, sequence_id first) {
  auto node = self->state.prompts.jobs.extract(first);
  auto& over = node.mapped();
  if (over.what.rebuild) rebuild_ended(self, over);
  if (over.cancelled) {
    over.promise.deliver(caf::make_error(ec::cancelled));
    return;
  }
  tell_of_pulls(self, over.what, true);
  over.promise.deliver(std::move(*over.result));
}

/// Takes the job on where it stands, unless devices still work on it: a cancelled one is over, a
/// failed one runs again with the same tokens, one whose rows are where they belong is told.
void settle(lane_ptr self, sequence_id first) {
  auto& st = self->state;
  auto& j = st.prompts.jobs.at(first);
  if (runs(st, first)) return;
  const bool failed = j.failure || j.cancelled;
  if (failed) leave_seat(self, first);
  if (j.pulls > 0 || (!failed && !j.result)) return;
  if (j.failure && !j.cancelled && ++j.failures < attempts_max) {
    spdlog::warn("prefill retried sequence={} failures={} reason=\"{}\"",
                 static_cast<uint64_t>(first), j.failures, explain(self->system(), j.failure));
    j.failure = caf::error{};
    j.result.reset();
    j.scores.clear();
    enqueue(self, first, true);
    return;
  }
  if (!j.cancelled && j.failure) {
    // The pipeline is made anew, and the request asks again. Where nobody has said that a device
    // failed, it is the links that are not to be trusted.
    const auto why = is_silence(j.failure)          ? ec::attempts_silent
                     : j.failure == ec::rows_differ ? ec::rows_differ
                                                    : ec::attempts_spent;
    end_lane(self, caf::make_error(why, explain(self->system(), j.failure)));
    return;
  }
  answer(self, first);
}

void on_pulls_ended(lane_ptr self, sequence_id first) {
  settle(self, first);
  pump(self);
}

/// The prompts that are computed and were not pulled meanwhile.
void begin_serialized(lane_ptr self, const pieces_of_prompts& pieces) {
  std::vector<prompt_rows> rows;
  for (const auto& x : pieces)
    if (const auto& j = self->state.prompts.jobs.at(x.sequence);
        j.result && !j.cancelled && j.mode == scheduler::pull_mode::serialized)
      rows.push_back({x.sequence, 0, x.position + x.tokens});
  begin_pulls(self, rows, 0, on_pulls_ended);
}

/// Nobody waits for KV that is on its way before it has the first token (S-M13).
void tell_first_tokens(lane_ptr self, const job& j) {
  if (!j.what.client || j.what.rebuild || j.pulls == 0) return;
  for (size_t k = 0; k < j.result->tokens.size(); ++k)
    self->send(j.what.client, first_token{sequence_id{static_cast<uint64_t>(j.what.first) + k},
                                          j.what.draws[k], j.result->tokens[k]});
}

/// What of a prompt is computed outlives this lane: whoever takes the prompt over goes on there. Of
/// a whole prompt its request tells, which may be too late when the lane hands over.
void note_filled(lane_ptr self, const pieces_of_prompts& pieces) {
  const auto& target = self->state.config.target;
  for (const auto& x : pieces)
    if ((!x.last || self->state.handing) && target.allocator)
      self->send(target.allocator, kv_filled{x.sequence, target.epoch, x.position + x.tokens});
}

/// Gives the jobs what the iteration has sampled; those whose last piece it was have a result.
void take_sampled_tokens(prompt_part& part, const pieces_of_prompts& pieces,
                         std::vector<sampled_token> records) {
  size_t next = 0;
  for (const auto& piece : pieces) {
    auto& j = part.jobs.at(piece.sequence);
    for (uint32_t i = 0; i < scores_of(piece); ++i)
      j.scores.push_back(std::move(records.at(next++)));
    if (!piece.last) continue;
    auto& result = j.result.emplace();
    result.waited_us = j.waited_us.value_or(0);
    result.scores = std::move(j.scores);
    for (size_t k = 0; k < j.what.samplings.size(); ++k)
      result.tokens.push_back(std::move(records.at(next++)));
  }
}

bool well_formed(const lane_state& st, const prefill& x) {
  const auto& config = st.config.prompts;
  return config && !x.tokens.empty() && !x.samplings.empty() && x.draws.size() == x.samplings.size()
         && x.changes.size() == x.samplings.size() && x.cached < x.tokens.size()
         && !(x.cached > 0 && (config->own || x.scored > 0)) && !(x.scored > 0 && x.rebuild)
         && !st.prompts.jobs.contains(x.first);
}

} // namespace

void begin_layered(lane_ptr self, const lane_state::flight& flight) {
  auto& st = self->state;
  if (!st.config.prompts || !st.config.prompts->own) return;
  std::vector<prompt_rows> rows;
  for (const auto& x : flight.pieces())
    if (st.prompts.jobs.at(x.sequence).mode == scheduler::pull_mode::layered)
      rows.push_back({x.sequence, x.position, x.tokens});
  begin_pulls(self, rows, flight.iteration, on_pulls_ended);
}

void take_prompts(lane_ptr self, const lane_state::flight& flight,
                  std::vector<sampled_token> records, std::chrono::nanoseconds took) {
  auto& st = self->state;
  const auto pieces = flight.pieces();
  const bool own = st.config.prompts->own.has_value();
  if (own) await_pulls(self, flight.iteration);
  announce_rebuild(st, flight.rows, took);
  take_sampled_tokens(st.prompts, pieces, std::move(records));
  if (own)
    begin_serialized(self, pieces);
  else
    note_filled(self, pieces);
  for (const auto& piece : pieces) {
    if (piece.last) tell_first_tokens(self, st.prompts.jobs.at(piece.sequence));
    if (piece.last) leave_seat(self, piece.sequence);
    settle(self, piece.sequence);
  }
}

void tell_load(lane_ptr self) {
  auto& st = self->state;
  if (!st.config.prompts) return;
  const auto left = st.prompts.plan->begun_tokens();
  if (std::exchange(st.prompts.told_left, left) != left && st.config.scheduler)
    self->send(st.config.scheduler, prefill_load{st.config.target.stream, left});
}

caf::result<prefilled> on_prefill(lane_ptr self, const prefill& x) {
  auto& st = self->state;
  if (!well_formed(st, x)) return caf::make_error(caf::sec::invalid_argument, "malformed prefill");
  const auto tokens = static_cast<uint32_t>(x.tokens.size());
  const auto& own = st.config.prompts->own;
  if (own && tokens > st.prompts.slots->slots())
    return caf::make_error(ec::never_fits,
                           std::to_string(tokens) + " tokens, but a prefill worker has "
                               + std::to_string(st.prompts.slots->slots()) + " slots");
  auto promise = self->make_response_promise<prefilled>();
  auto& j = st.prompts.jobs[x.first];
  j.what = x;
  j.promise = promise;
  j.asked = self->clock().now();
  j.came = j.asked.time_since_epoch();
  if (own) j.mode = scheduler::pull_mode_of(tokens, own->serialize_below);
  if (x.rebuild) rebuild_began(self, j);
  tell_of_pulls(self, x, false);
  enqueue(self, x.first, false);
  pump(self);
  return promise;
}

void on_cancel(lane_ptr self, const prefill_cancel& x) {
  auto& jobs = self->state.prompts.jobs;
  const auto found = jobs.find(x.first);
  if (found == jobs.end()) return;
  found->second.cancelled = true;
  settle(self, x.first);
  pump(self);
}

} // namespace lamella::actors
