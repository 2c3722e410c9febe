#include "actors/gateway/gateway_admin.hpp"

#include "actors/gateway/gateway_console.hpp"
#include "actors/gateway/gateway_events.hpp"
#include "actors/gateway/gateway_pools.hpp"
#include "actors/gateway/gateway_reload.hpp"
#include "actors/gateway/gateway_status.hpp"
#include "actors/gateway/gateway_trace.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/explain.hpp"
#include "actors/shared/injury.hpp"
#include "net/api/api_request.hpp"

namespace lamella::actors {

namespace {

const net::http_headers json_type{{"content-type", "application/json"}};

/// `{"action":"kill","target":"model/0","duration_ms":500}`: harm for a worker, in tests.
void answer_chaos(gateway_ptr self, const exchange_ptr& exchange) {
  const auto& st = self->state;
  if (!st.config.chaos)
    throw net::insufficient_permissions(
        "chaos is not enabled; start the service with chaos.enabled: true");
  if (exchange->request().body.size() > brief_bytes_max) throw net::body_too_large(brief_bytes_max);
  const auto body = net::parse_chaos_request(exchange->request().body);
  if (!injury_named(body.action))
    throw net::invalid_value("action",
                             "unknown action '" + body.action
                                 + "'; use kill, stop, "
                                   "pause, slow, partition, isolate, corrupt, drop or oom");
  self->request(st.members, std::chrono::seconds{2},
                injure{body.target, {body.action, body.duration_ms}, st.config.world.chance()})
      .then(
          [exchange](const std::string& seat) {
            exchange->respond(202, json_type, "{\"injured\":\"" + seat + "\"}");
          },
          [self, exchange](caf::error& reason) {
            auto error = net::invalid_value("target", explain(self->system(), reason));
            error.status = 409;
            net::respond_error(*exchange, error);
          });
}

/// A page of somebody else in an operator's browser can send what needs no key; browsers say whose
/// page it was.
void refuse_pages(const gateway_state& st, const net::http_request& request) {
  if (request.method != "POST" || !st.config.admin_keys.empty()) return;
  if (request.headers.find("origin") && !is_of_console(request))
    throw net::insufficient_permissions("web pages may use this only when the admin listener "
                                        "has keys (admin.api_keys_file)");
}

} // namespace

void answer_admin(gateway_ptr self, const exchange_ptr& exchange, const std::string& what) {
  const auto& request = exchange->request();
  refuse_pages(self->state, request);
  if (what == "status" && request.method == "GET") {
    answer_status(self, exchange);
  } else if (what == "console" && request.method == "GET") {
    answer_console(self, exchange);
  } else if (what == "drain" && request.method == "POST") {
    exchange->respond(202, json_type, "{\"draining\":true}");
    self->state.config.on_drain();
  } else if (what == "chaos" && request.method == "POST") {
    answer_chaos(self, exchange);
  } else if (what == "reload" && request.method == "POST") {
    answer_reload(self, exchange);
  } else if (what == "scale" && request.method == "POST") {
    answer_scale(self, exchange);
  } else if (what == "drain-worker" && request.method == "POST") {
    answer_drain_worker(self, exchange);
  } else if (what == "pools" && request.method == "GET") {
    answer_pools(self, exchange);
  } else if (what == "events" && request.method == "GET") {
    answer_events(self, exchange);
  } else if (what == "trace" && request.method == "POST") {
    answer_trace(self, exchange);
  } else if (what == "status" || what == "pools" || what == "events" || what == "console") {
    throw net::method_not_allowed(request.method, "GET");
  } else if (what == "drain" || what == "chaos" || what == "reload" || what == "scale"
             || what == "drain-worker" || what == "trace") {
    throw net::method_not_allowed(request.method, "POST");
  } else {
    throw net::route_not_found(request.method, request.path);
  }
}

} // namespace lamella::actors
