#include "actors/prefill_worker.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using worker_ptr = prefill_worker_actor::stateful_pointer<prefill_worker_state>;
using job = prefill_worker_state::job;

/// Prompts in one iteration: bounds the spans of a launch.
constexpr uint32_t prompts_per_iteration = 64;

void pump(worker_ptr self);

/// The last row of a prompt is drawn from once per choice.
void add_samples(iteration_launch& x, const job& j, uint32_t row) {
  const auto selected = static_cast<uint32_t>(x.selected.size());
  x.selected.push_back(row);
  for (size_t k = 0; k < j.what.samplings.size(); ++k) {
    const auto first_edit = static_cast<uint32_t>(x.edits.size());
    const auto& edits = j.what.edits[k];
    x.edits.insert(x.edits.end(), edits.begin(), edits.end());
    x.samples.push_back(record_of(j.what.samplings[k], selected, j.what.draws[k], first_edit,
                                  static_cast<uint32_t>(edits.size())));
    x.sample_seats.push_back(*j.seat);
  }
}

iteration_launch compose(worker_ptr self, const std::vector<scheduler::prefill_piece>& pieces) {
  auto& st = self->state;
  iteration_launch x;
  x.stream = st.config.target.stream;
  x.epoch = st.config.target.epoch;
  x.iteration = ++st.iteration;
  x.attempt = st.failures; // clears what an iteration that was given up left on the streams
  for (const auto& piece : pieces) {
    auto& j = st.jobs.at(piece.sequence);
    if (!j.seat) j.seat = st.seats.join(j.what.member, j.what.runs);
    x.spans.push_back({*j.seat, piece.position, piece.tokens});
    const auto begin = j.what.tokens.begin() + piece.position;
    x.tokens.insert(x.tokens.end(), begin, begin + piece.tokens);
    if (piece.last) add_samples(x, j, static_cast<uint32_t>(x.tokens.size()) - 1);
  }
  std::tie(x.changes, x.table_version) = st.seats.take_changes();
  return x;
}

/// The job is over: its seat is free from the next launch on.
void end(worker_ptr self, sequence_id first) {
  auto node = self->state.jobs.extract(first);
  if (node && node.mapped().seat) self->state.seats.leave(*node.mapped().seat);
}

void on_sampled(worker_ptr self, sampled answer) {
  auto& st = self->state;
  auto flight = std::move(*st.current);
  st.current.reset();
  st.failures = 0;
  if (st.config.target.beats) st.config.target.beats->beat(self->clock().now());
  if (st.config.target.numbers)
    st.config.target.numbers->iteration(flight.launch.tokens.size(), flight.pieces.size());
  size_t next = 0;
  for (const auto& piece : flight.pieces) {
    auto& j = st.jobs.at(piece.sequence);
    const auto choices = piece.last ? j.what.samplings.size() : 0;
    if (j.cancelled) {
      j.promise.deliver(caf::make_error(ec::cancelled));
    } else if (piece.last) {
      prefilled result;
      for (size_t k = 0; k < choices; ++k)
        result.tokens.push_back(std::move(answer.tokens.at(next + k)));
      j.promise.deliver(std::move(result));
    }
    next += choices;
    if (j.cancelled || piece.last) {
      st.plan->remove(piece.sequence);
      end(self, piece.sequence);
    }
  }
  pump(self);
}

void start(worker_ptr self) {
  auto& st = self->state;
  const auto iteration = st.current->launch.iteration;
  const auto attempt = st.current->launch.attempt;
  const auto is_current = [self, iteration, attempt] {
    const auto& current = self->state.current;
    return current && current->launch.iteration == iteration && current->launch.attempt == attempt;
  };
  launch(
      &*self, st.config.target, st.current->launch,
      [=](sampled& answer) {
        if (is_current()) on_sampled(self, std::move(answer));
      },
      [=](caf::error& reason) {
        if (peer_lost(reason))
          self->quit(std::move(reason));
        else if (is_current())
          self->send(self, iteration_failed{self->state.config.target.stream, iteration, attempt,
                                            self->system().render(reason)});
      });
}

void on_failure(worker_ptr self, const iteration_failed& x) {
  auto& st = self->state;
  if (!st.current || st.current->launch.iteration != x.iteration
      || st.current->launch.attempt != x.attempt)
    return;
  spdlog::warn("prefill iteration failed iteration={} attempt={} reason=\"{}\"", x.iteration,
               x.attempt, x.reason);
  if (++st.failures % attempts_max != 0) {
    st.current->launch.attempt = st.failures;
    st.current->launch.changes.clear(); // they were applied with the first attempt
    start(self);
    return;
  }
  auto flight = std::move(*st.current);
  st.current.reset();
  for (const auto& piece : flight.pieces) {
    st.jobs.at(piece.sequence).promise.deliver(caf::make_error(ec::device_lost, x.reason));
    st.plan->remove(piece.sequence);
    end(self, piece.sequence);
  }
  pump(self);
}

void pump(worker_ptr self) {
  auto& st = self->state;
  if (st.current) return;
  auto pieces = st.plan->next(prompts_per_iteration);
  if (pieces.empty()) return;
  std::stable_sort(pieces.begin(), pieces.end(), [&](const auto& a, const auto& b) {
    return st.jobs.at(a.sequence).what.member < st.jobs.at(b.sequence).what.member;
  });
  auto x = compose(self, pieces);
  st.current.emplace(prefill_worker_state::flight{std::move(x), std::move(pieces)});
  start(self);
}

caf::result<prefilled> on_prefill(worker_ptr self, const prefill& x) {
  auto& st = self->state;
  if (x.tokens.empty() || x.samplings.empty() || x.draws.size() != x.samplings.size()
      || x.edits.size() != x.samplings.size() || st.jobs.contains(x.first))
    return caf::make_error(caf::sec::invalid_argument, "malformed prefill");
  auto promise = self->make_response_promise<prefilled>();
  st.plan->add(x.first, static_cast<uint32_t>(x.tokens.size()));
  st.jobs.emplace(x.first, job{x, promise, std::nullopt, false});
  pump(self);
  return promise;
}

void on_cancel(worker_ptr self, sequence_id first) {
  auto& st = self->state;
  auto found = st.jobs.find(first);
  if (found == st.jobs.end()) return;
  const bool running = st.current
                       && std::any_of(st.current->pieces.begin(), st.current->pieces.end(),
                                      [&](const auto& p) { return p.sequence == first; });
  if (running) {
    found->second.cancelled = true;
    return;
  }
  st.plan->remove(first);
  found->second.promise.deliver(caf::make_error(ec::cancelled));
  end(self, first);
}

} // namespace

prefill_worker_actor::behavior_type
prefill_worker(prefill_worker_actor::stateful_pointer<prefill_worker_state> self,
               prefill_worker_config config) {
  self->state.config = std::move(config);
  self->state.plan.emplace(self->state.config.chunk_tokens);
  return {
      [self](const prefill& x) { return on_prefill(self, x); },
      [self](const prefill_cancel& x) { on_cancel(self, x.first); },
      [self](const iteration_failed& x) { on_failure(self, x); },
  };
}

} // namespace lamella::actors
