#include "cli/bench/bench_replay.hpp"

#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/tokens.hpp"
#include "actors/request/service.hpp"
#include "actors/shared/explain.hpp"

#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

namespace lamella::cli {

namespace {

using clock = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;
using scheduler::simulation_result;

/// Plays the trace when it is asked to, and answers when the last token is there.
using replay_actor = caf::typed_actor<
    caf::replies_to<caf::get_atom>::with<bool>,
    caf::reacts_to<caf::tick_atom, uint32_t>>::extend_with<actors::decode_client_actor>;

struct played_request {
  std::vector<actors::token_id> tokens; ///< prompt and answer
  uint32_t generated = 0;
  clock::time_point arrival, first, last;
};

struct replay_state {
  actors::service_ptr server;
  const scheduler::request_trace* trace = nullptr; ///< outlives the actor's work
  simulation_result* result = nullptr;             ///< the same; read after the answer
  scheduler::load_kind load = scheduler::load_kind::saturated;
  uint64_t first_request = 0;
  std::chrono::seconds timeout{600};
  std::vector<played_request> requests;
  size_t over = 0;
  clock::time_point began;
  double stay_s = 0;
  caf::typed_response_promise<bool> promise;
  bool answered = false;
  const char* name = "replay";
};

using replay_ptr = replay_actor::stateful_pointer<replay_state>;

actors::sequence_id sequence_at(replay_ptr self, uint32_t index) {
  return scheduler::sequence_of(actors::request_id{self->state.first_request + index}, 0);
}
uint32_t index_of(replay_ptr self, actors::sequence_id sequence) {
  return static_cast<uint32_t>(static_cast<uint64_t>(scheduler::request_of(sequence))
                               - self->state.first_request);
}

void fail(replay_ptr self, caf::error reason) {
  auto& st = self->state;
  if (std::exchange(st.answered, true)) return;
  st.promise.deliver(std::move(reason));
}

void give_back(replay_ptr self, uint32_t index) {
  auto& st = self->state;
  self->send(st.server->allocator,
             actors::kv_release{{sequence_at(self, index)}, st.server->epoch});
  self->send(st.server->scheduler, actors::retire{sequence_at(self, index)});
}

/// A token is there; true when it was the last.
bool take_token(replay_ptr self, uint32_t index, actors::token_id token) {
  auto& st = self->state;
  auto& r = st.requests[index];
  auto& result = *st.result;
  const auto now = clock::now();
  r.tokens.push_back(token);
  ++result.tokens;
  if (r.generated++ == 0) {
    result.ttft.add(seconds{now - r.arrival}.count());
    r.first = now;
  } else {
    result.tbt.add(seconds{now - r.last}.count());
  }
  r.last = now;
  if (r.generated < (*st.trace)[index].output_tokens) return false;
  ++result.requests;
  result.e2e.add(seconds{now - r.arrival}.count());
  st.stay_s += seconds{now - r.first}.count();
  result.seconds = result.measured_seconds = seconds{now - st.began}.count();
  result.tokens_per_s = static_cast<double>(result.tokens) / result.seconds;
  result.mean_batch = st.stay_s / result.seconds;
  if (++st.over == st.requests.size() && !std::exchange(st.answered, true))
    st.promise.deliver(true);
  return true;
}

void on_admitted(replay_ptr self, uint32_t index, const actors::admitted& place) {
  auto& st = self->state;
  auto& r = st.requests[index];
  actors::prefill x;
  x.first = sequence_at(self, index);
  x.tokens = r.tokens;
  x.member = place.holdings.front().member;
  x.runs = place.holdings.front().runs;
  x.samplings.resize(1);
  x.draws = {r.generated};
  x.changes.resize(1);
  self->request(st.server->prefill_workers.at(place.prefill_worker), st.timeout, std::move(x))
      .then(
          [=](const actors::prefilled& drawn) {
            auto& state = self->state;
            auto& request = state.requests[index];
            const auto position = static_cast<uint32_t>(request.tokens.size());
            if (take_token(self, index, drawn.tokens.front().token)) {
              give_back(self, index);
              return;
            }
            actors::batch_join join;
            join.sequence = sequence_at(self, index);
            join.client = caf::actor_cast<actors::decode_client_actor>(self);
            join.member = place.holdings.front().member;
            join.runs = place.holdings.front().runs;
            join.position = position;
            join.last = drawn.tokens.front().token;
            join.generated = request.generated;
            join.max_tokens = (*state.trace)[index].output_tokens;
            join.ignore_end = true;
            self->send(state.server->batches.at(static_cast<uint32_t>(place.batch)),
                       std::move(join));
          },
          [=](caf::error& reason) { fail(self, std::move(reason)); });
}

void ask_admission(replay_ptr self, uint32_t index, bool resumed) {
  auto& st = self->state;
  const auto tokens = static_cast<uint32_t>(st.requests[index].tokens.size());
  self->request(st.server->scheduler, st.timeout,
                actors::admit{sequence_at(self, index), 1, tokens, resumed})
      .then([=](const actors::admitted& place) { on_admitted(self, index, place); },
            [=](caf::error& reason) { fail(self, std::move(reason)); });
}

void begin(replay_ptr self, uint32_t index) {
  auto& st = self->state;
  const auto& x = (*st.trace)[index];
  auto& r = st.requests[index];
  // From when it should have come: a late timer is part of the service's time.
  r.arrival = st.began;
  if (st.load == scheduler::load_kind::arrivals)
    r.arrival +=
        std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>{x.arrival_s});
  std::mt19937 random{index + 1};
  r.tokens.reserve(x.prompt_tokens + x.output_tokens);
  for (uint32_t i = 0; i < x.prompt_tokens; ++i)
    r.tokens.push_back(static_cast<actors::token_id>(random() % st.server->text->vocabulary()));
  ask_admission(self, index, false);
}

replay_actor::behavior_type player(replay_ptr self, actors::service_ptr server,
                                   const scheduler::request_trace* trace, scheduler::load_kind load,
                                   uint64_t first_request, std::chrono::seconds timeout,
                                   simulation_result* result) {
  auto& st = self->state;
  st.server = std::move(server);
  st.trace = trace;
  st.result = result;
  st.load = load;
  st.first_request = first_request;
  st.timeout = timeout;
  st.requests.resize(trace->size());
  return {
      [self](caf::get_atom) -> caf::result<bool> {
        auto& state = self->state;
        state.promise = self->make_response_promise<bool>();
        state.began = clock::now();
        for (uint32_t i = 0; i < state.trace->size(); ++i)
          if (state.load == scheduler::load_kind::saturated)
            begin(self, i);
          else
            self->delayed_send(self,
                               std::chrono::duration_cast<caf::timespan>(
                                   std::chrono::duration<double>{(*state.trace)[i].arrival_s}),
                               caf::tick_atom_v, i);
        return state.promise;
      },
      [self](caf::tick_atom, uint32_t index) { begin(self, index); },
      [self](const actors::token& x) {
        take_token(self, index_of(self, x.sequence), x.value.token);
      },
      [](const actors::prefill_begun&) {},
      [](const actors::first_token&) {}, // told to those who ask for it
      [self](const actors::preempted& x) {
        ++self->state.result->preemptions;
        ask_admission(self, index_of(self, x.sequence), true);
      },
      [self](const actors::sequence_failed& x) {
        fail(self, caf::make_error(caf::sec::runtime_error, x.reason));
      },
  };
}

} // namespace

scheduler::simulation_result replay(actors::node& n, const scheduler::request_trace& trace,
                                    scheduler::load_kind load, uint64_t first_request,
                                    std::chrono::seconds timeout) {
  if (trace.empty()) throw std::runtime_error{"the trace has no requests"};
  simulation_result result;
  caf::scoped_actor self{n.system()};
  const auto actor =
      n.system().spawn(player, n.server(), &trace, load, first_request, timeout, &result);
  std::optional<std::string> failure;
  self->request(actor, timeout, caf::get_atom_v)
      .receive([](bool) {},
               [&](caf::error& reason) { failure = actors::explain(n.system(), reason); });
  // Nothing of ours may be written to once this function has ended.
  self->monitor(actor);
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  self->receive([](const caf::down_msg&) {});
  if (failure) throw std::runtime_error{"the replay of the trace stopped early: " + *failure};
  return result;
}

} // namespace lamella::cli
