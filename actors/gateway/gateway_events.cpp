#include "actors/gateway/gateway_events.hpp"

#include "actors/shared/events.hpp"
#include "actors/shared/exceptions.hpp"
#include "base/environment.hpp"
#include "base/json_writer.hpp"
#include "net/api/api_route.hpp"
#include "net/http/api_error.hpp"

#include <charconv>

namespace lamella::actors {

namespace {

constexpr size_t waiting_max = 32;
constexpr uint64_t wait_max = 60; ///< seconds
/// Seconds; older than any service.
constexpr uint64_t since_max = 1'000'000'000;

/// What a reader asks for.
struct event_question {
  uint64_t after = 0;
  std::chrono::system_clock::time_point since{};
  std::chrono::seconds wait{0};
};

/// One whole number of the query; throws api_error (400).
uint64_t number_of(const std::string& query, const char* name, uint64_t most) {
  const auto text = net::query_value(query, name);
  if (!text) return 0;
  uint64_t value = 0;
  const auto* end = text->data() + text->size();
  const auto [last, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc{} || last != end || value > most)
    throw net::invalid_value(name, std::string{name} + " must be a whole number, "
                                       + std::to_string(most) + " at most");
  return value;
}

void respond(const exchange_ptr& exchange, const event_question& x) {
  const auto page = events().after(x.after, x.since);
  json_writer out;
  out.begin_object()
      .member("version", 1)
      .member("time", utc_text(date_of_machine()))
      .member("newest", page.newest)
      .member("missed", page.missed)
      .key("events")
      .begin_array();
  for (const auto& each : page.events) write_event(out, each);
  out.end_array().end_object();
  exchange->respond(200, net::json_content, out.take());
}

struct event_reader_state {
  uint64_t ticket = 0;
  const char* name = "event_reader";
};

/// Lives until one question has its answer, or its asker or the gateway is gone.
caf::behavior event_reader(caf::stateful_actor<event_reader_state>* self,
                           const caf::actor_addr& owner, const exchange_ptr& exchange,
                           const event_question& what) {
  end_on_exceptions(self);
  const auto wake = [me = caf::actor_cast<caf::actor_addr>(self)] {
    if (const auto reader = caf::actor_cast<caf::actor>(me)) caf::anon_send(reader, wake_atom_v);
  };
  self->monitor(owner);
  self->set_down_handler([self](const caf::down_msg&) { self->quit(); });
  self->attach_functor([self] { events().stop_waiting(self->state.ticket); });
  if (what.wait.count() > 0) self->state.ticket = events().wait(what.after, wake);
  if (self->state.ticket != 0) {
    exchange->on_closed(wake);
    self->delayed_send(self, what.wait, wake_atom_v);
  } else {
    self->send(self, wake_atom_v);
  }
  return {[self, exchange, what](wake_atom) {
    if (exchange->open()) respond(exchange, what);
    self->quit();
  }};
}

} // namespace

void answer_events(gateway_ptr self, const exchange_ptr& exchange) {
  const auto& query = exchange->request().query;
  event_question x;
  x.after = number_of(query, "after", UINT64_MAX);
  if (const auto age = number_of(query, "since", since_max); age != 0)
    x.since = date_of_machine() - std::chrono::seconds{age};
  x.wait = std::chrono::seconds{number_of(query, "wait", wait_max)};
  if (x.wait.count() > 0 && events().waiting() >= waiting_max)
    throw net::no_capacity(std::to_string(waiting_max)
                           + " readers wait for events already: ask without 'wait', or retry soon");
  self->spawn(event_reader, caf::actor_cast<caf::actor_addr>(self), exchange, x);
}

} // namespace lamella::actors
