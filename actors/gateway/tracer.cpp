#include "actors/gateway/tracer.hpp"

#include "actors/shared/exceptions.hpp"
#include "actors/shared/explain.hpp"
#include "actors/worker/worker_trace.hpp"
#include "net/http/api_error.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using tracer_ptr = tracer_actor::stateful_pointer<tracer_state>;

/// For one answer of a worker, and for all that it hands over.
constexpr caf::timespan answer_limit = std::chrono::seconds{2};
constexpr caf::timespan fetch_limit = std::chrono::seconds{10};
/// Workers begin one after the other; the last one's time is over so long after the first one's.
constexpr std::chrono::milliseconds settle{20};

int64_t now_ns() { return clock_of_process().now_ns; }

/// The quickest round trip tells most.
void learn(tracer_ptr self, recorded_worker& w, const trace_begun& there, int64_t asked_ns) {
  const auto x = offset_by(there, self->state.here.host, asked_ns, now_ns());
  if (!w.clock || x.error_ns < w.clock->error_ns) w.clock = x;
}

void answer(tracer_ptr self) {
  auto& st = self->state;
  if (std::exchange(st.ended, true)) return;
  auto write = [x = std::move(st.result), audience = st.config.audience,
                token = st.config.token]() mutable {
    drop_told_twice(x);
    audience->deliver(trace_json(x));
  };
  self->send(st.config.aside, aside_job{aside_lane::bulky, std::move(write)});
  self->quit();
}

void refuse(tracer_ptr self, const net::api_error& why) {
  self->state.ended = true;
  self->state.config.audience->refuse(why);
  self->quit();
}

void one_less(tracer_ptr self) {
  auto& st = self->state;
  if (--st.left > 0) return;
  if (st.fetching) return answer(self);
  self->delayed_send(self, st.config.length + settle, wake_atom_v);
}

traced_worker_actor handle_of(const recorded_worker& w) {
  return caf::actor_cast<traced_worker_actor>(w.who.handle);
}

void begin(tracer_ptr self, trace_workers& found) {
  auto& st = self->state;
  if (found.workers.empty())
    return refuse(self, net::no_capacity("no worker is ready to be recorded: retry soon"));
  for (auto& x : found.workers) st.result.workers.push_back({std::move(x), {}, {}, {}, {}, {}});
  st.left = st.result.workers.size();
  st.result.begin_ns = now_ns();
  const trace_begin order{st.config.id, static_cast<uint32_t>(st.config.length.count())};
  for (size_t i = 0; i < st.result.workers.size(); ++i)
    self->request(handle_of(st.result.workers[i]), answer_limit, order)
        .then(
            [self, i, asked = now_ns()](const trace_begun& x) {
              learn(self, self->state.result.workers[i], x, asked);
              one_less(self);
            },
            [self, i](const caf::error& reason) {
              self->state.result.workers[i].trouble =
                  "it did not begin: " + explain(self->system(), reason);
              one_less(self);
            });
}

/// The next part of what a worker has, until it has no more.
void fetch(tracer_ptr self, size_t i) {
  auto& st = self->state;
  auto& w = st.result.workers[i];
  const auto most = static_cast<uint32_t>(
      std::max<size_t>(trace_page_spans, trace_spans_max / st.result.workers.size()));
  self->request(handle_of(w), answer_limit, trace_ask{st.config.id, w.spans.size(), most})
      .then(
          [self, i, asked = now_ns()](trace_page& x) {
            if (self->state.ended) return;
            auto& to = self->state.result.workers[i];
            learn(self, to, x.clock, asked);
            to.names = std::move(x.names);
            to.lanes = std::move(x.lanes);
            const bool more = !x.spans.empty() && to.spans.size() + x.spans.size() < x.total;
            to.spans.insert(to.spans.end(), x.spans.begin(), x.spans.end());
            more ? fetch(self, i) : one_less(self);
          },
          [self, i](const caf::error& reason) {
            if (self->state.ended) return;
            self->state.result.workers[i].trouble =
                "it did not hand over what it recorded: " + explain(self->system(), reason);
            one_less(self);
          });
}

void fetch_all(tracer_ptr self) {
  auto& st = self->state;
  st.fetching = true;
  st.left = 1; // for this function
  for (size_t i = 0; i < st.result.workers.size(); ++i)
    if (st.result.workers[i].trouble.empty()) {
      ++st.left;
      fetch(self, i);
    }
  self->delayed_send(self, fetch_limit, expire_atom_v);
  one_less(self);
}

/// What is there has to do.
void expire(tracer_ptr self) {
  for (auto& w : self->state.result.workers)
    if (w.trouble.empty() && w.spans.empty())
      w.trouble = "it did not hand over what it recorded in time";
  answer(self);
}

} // namespace

tracer_actor::behavior_type tracer(tracer_actor::stateful_pointer<tracer_state> self,
                                   tracer_config config) {
  end_on_exceptions(self);
  auto& st = self->state;
  st.config = std::move(config);
  st.result = std::move(st.config.empty);
  st.here = clock_of_process();
  self->monitor(st.config.owner);
  self->set_down_handler([self](const caf::down_msg&) { self->quit(); });
  if (st.config.alone)
    st.config.alone->on_closed([me = caf::actor_cast<caf::actor_addr>(self)] {
      if (const auto x = caf::actor_cast<tracer_actor>(me)) caf::anon_send(x, cancel_atom_v);
    });
  self->request(st.config.members, answer_limit, trace_workers_ask{})
      .then([self](trace_workers& x) { begin(self, x); },
            [self](const caf::error& reason) {
              refuse(self, net::internal_error(explain(self->system(), reason)));
            });
  return {
      [self](wake_atom) { fetch_all(self); },
      [self](expire_atom) { expire(self); },
      [self](cancel_atom) { self->quit(); },
  };
}

} // namespace lamella::actors
