#include "actors/gateway/gateway_metrics.hpp"

#include "actors/protocol/status.hpp"
#include "actors/shared/log_drops.hpp"

namespace lamella::actors {

namespace {

/// For all workers together to say how they are.
constexpr std::chrono::seconds workers_timeout{2};

net::http_totals totals_of(const net::http_counters& x) {
  net::http_totals all;
  all.connections = x.connections_open;
  all.requests_open = x.exchanges_open;
  all.answer_bytes = x.answer_bytes;
  all.accepted = x.connections_accepted;
  all.refused = x.connections_refused;
  all.errors = x.refused;
  all.disconnects = x.disconnects;
  all.stalls = x.stalls;
  all.answers_refused = x.answers_refused;
  return all;
}

} // namespace

void count_answer(net::metrics& metrics, const exchange_ptr& exchange, net::api_route route,
                  int status) {
  const auto seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - exchange->request().arrived)
          .count();
  metrics.http_request(net::route_name(route), exchange->request().method, status, seconds);
}

void answer_metrics(gateway_ptr self, const exchange_ptr& exchange) {
  const auto scrape = [self, exchange] {
    const auto& config = self->state.config;
    auto& metrics = *config.metrics;
    metrics.set_mailbox_depth("gateway", self->mailbox().size());
    const auto ready =
        config.health->ask(health_board::probe::ready, std::chrono::steady_clock::now());
    metrics.set_ready(ready.status == 200);
    if (config.bodies) metrics.set_bodies(config.bodies->held(), config.bodies->refusals());
    if (config.http) metrics.set_http(totals_of(config.http()));
    const uint64_t dropped = log_lines_dropped;
    metrics.log_dropped("control", dropped - std::exchange(self->state.log_dropped, dropped));
    self->send(
        config.aside,
        aside_job{
            aside_lane::brief, [exchange, to = config.metrics] {
              auto page = to->scrape(exchange->request().headers.get("accept"));
              exchange->respond(200, {{"content-type", page.content_type}}, std::move(page.body));
              count_answer(*to, exchange, net::api_route::metrics, 200);
            }});
  };
  if (!self->state.members) return scrape();
  self->request(self->state.members, workers_timeout, status_atom_v)
      .then(
          [self, scrape](const system_status& status) {
            self->state.traffic.note(status, *self->state.config.metrics);
            scrape();
          },
          [scrape](caf::error&) { scrape(); });
}

} // namespace lamella::actors
