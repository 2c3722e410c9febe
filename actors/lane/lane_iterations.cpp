#include "actors/lane/lane_iterations.hpp"

#include "actors/lane/lane_hand_over.hpp"
#include "actors/lane/lane_launch.hpp"
#include "actors/lane/lane_prompts.hpp"
#include "actors/lane/lane_pump.hpp"
#include "actors/lane/lane_tokens.hpp"
#include "actors/lane/prompt_pulls.hpp"
#include "actors/shared/explain.hpp"

#include "base/failpoint.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

std::chrono::nanoseconds now_of(lane_ptr self) { return self->clock().now().time_since_epoch(); }

void on_sampled(lane_ptr self, uint64_t iteration, uint32_t attempt, sampled answer);

/// Hands the iteration to the devices.
void start(lane_ptr self, const iteration_launch& x) {
  const auto stream = x.stream;
  const auto iteration = x.iteration;
  const auto attempt = x.attempt;
  launch(
      &*self, self->state.config.target, x,
      [=](sampled& answer) { on_sampled(self, iteration, attempt, std::move(answer)); },
      [=](caf::error& reason) {
        if (peer_lost(reason))
          self->quit(peer_gone());
        else if (reason == ec::link_cut)
          self->delayed_send(self, cut_timeout,
                             iteration_failed{stream, iteration, attempt, true, cut_reason});
        else
          on_failure(self, {stream, iteration, attempt, is_silence(reason),
                            explain(self->system(), reason)});
      });
}

void note_iteration(lane_ptr self, const lane_state::flight& flight) {
  auto& st = self->state;
  const auto took = now_of(self) - flight.launched;
  learn(st, flight, took);
  st.tokens.batch.ran(now_of(self), took);
  if (st.config.target.beats) st.config.target.beats->beat(self->clock().now());
  if (const auto& metrics = st.config.target.metrics) {
    metrics->iteration(flight.rows, flight.spans.size());
    if (st.config.tokens) metrics->set_mailbox_depth("batch", self->mailbox().size());
  }
}

/// The records of the prompts; those of sequences that decode are committed.
std::vector<sampled_token> commit_tokens(lane_ptr self, const lane_state::flight& flight,
                                         std::vector<sampled_token> records) {
  std::vector<sampled_token> of_prompts;
  auto& st = self->state;
  size_t next = 0;
  for (const auto& span : flight.spans) {
    if (const auto* seat = std::get_if<uint32_t>(&span.what)) {
      commit(self, *seat, std::move(records.at(next++)));
      continue;
    }
    const auto& piece = std::get<scheduler::prefill_piece>(span.what);
    const auto draws = st.prompts.jobs.at(piece.sequence).what.samplings.size();
    const auto count = scores_of(piece) + (piece.last ? draws : 0);
    for (size_t i = 0; i < count; ++i) of_prompts.push_back(std::move(records.at(next++)));
  }
  return of_prompts;
}

void on_sampled(lane_ptr self, uint64_t iteration, uint32_t attempt, sampled answer) {
  auto& st = self->state;
  if (!st.line.is_current(iteration, attempt)) { // given up before
    if (st.config.target.metrics) st.config.target.metrics->fenced(net::fence::attempt);
    return;
  }
  if (st.line.flights().front().has_tokens() && failpoint_hit(failpoint::batch_commit)) {
    on_failure(self, {st.config.target.stream, iteration, attempt, false, "failpoint"});
    return;
  }
  const auto flight = st.line.end();
  note_iteration(self, flight);
  auto of_prompts = commit_tokens(self, flight, std::move(answer.tokens));
  if (flight.has_prompts())
    take_prompts(self, flight, std::move(of_prompts), now_of(self) - flight.launched);
  pump(self);
  tell_iteration_end(self);
}

} // namespace

bool launch_iteration(lane_ptr self) {
  auto& st = self->state;
  if (st.in_step > 0) --st.in_step;
  // Prompts keep the number of their iteration: pulls wait for it.
  const bool same = !st.prompts.again.empty();
  auto spans = next_spans(self);
  if (spans.empty()) return false;
  auto& flight = st.line.begin(std::move(spans), same, now_of(self));
  if (flight.has_prompts()) failpoint_or_throw(failpoint::prefill_chunk);
  note_begun(self, flight.pieces());
  const auto x = compose(self, flight);
  flight.rows = static_cast<uint32_t>(x.tokens.size());
  start(self, x);
  if (!same) begin_layered(self, flight);
  return true;
}

void on_failure(lane_ptr self, const iteration_failed& x) {
  auto& st = self->state;
  if (x.attempt == attempt_of_pulls) return end_lane(self, caf::make_error(ec::link_cut));
  if (x.attempt == attempt_of_late_pull) return on_late_pull(self, x.iteration);
  if (!st.line.contains(x.iteration, x.attempt)) return;
  const auto failures = st.line.failures() + 1;
  if (auto end = end_of_attempts(x, failures, st.line.silent() || x.silent))
    return end_lane(self, std::move(end)); // all go on in the next pipeline
  st.prompts.again = st.line.fail(x.silent);
  st.tokens.batch.drop();
  spdlog::warn("{} iteration failed stream={} iteration={} failures={} reason=\"{}\"", st.name,
               static_cast<uint32_t>(st.config.target.stream), x.iteration, failures, x.reason);
  pump(self);
}

} // namespace lamella::actors
