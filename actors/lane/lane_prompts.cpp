#include "actors/lane/lane_prompts.hpp"

#include "actors/lane/lane_launch.hpp"
#include "actors/lane/lane_pump.hpp"
#include "actors/lane/prompt_jobs.hpp"
#include "actors/lane/prompt_pulls.hpp"
#include "actors/lane/prompt_rebuilds.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/tokens.hpp"

namespace lamella::actors {

namespace {

using job = prompt_part::job;
using pieces_of_prompts = std::vector<scheduler::prefill_piece>;

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

/// What of a prompt is computed outlives this lane: whoever takes the prompt over goes on there.
/// REQUEST reports a whole prompt; when the lane hands over, that report may come too late, so the
/// lane reports it.
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
  if (own) {
    for (const auto& x : pieces) st.prompts.jobs.at(x.sequence).computed = x.position + x.tokens;
    begin_serialized(self, pieces);
  } else {
    note_filled(self, pieces);
  }
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
