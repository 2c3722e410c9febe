#include "actors/gateway/gateway_admin.hpp"

#include "actors/gateway/gateway_console.hpp"
#include "actors/gateway/gateway_events.hpp"
#include "actors/gateway/gateway_pools.hpp"
#include "actors/gateway/gateway_reload.hpp"
#include "actors/gateway/gateway_status.hpp"
#include "actors/gateway/gateway_trace.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/shared/explain.hpp"
#include "actors/shared/injury.hpp"
#include "net/api/api_request.hpp"
#include "net/api/query.hpp"

#include <array>
#include <span>
#include <string_view>

namespace lamella::actors {

namespace {

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
            exchange->respond(202, net::json_content, "{\"injured\":\"" + seat + "\"}");
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

void answer_drain(gateway_ptr self, const exchange_ptr& exchange) {
  exchange->respond(202, net::json_content, "{\"draining\":true}");
  self->state.config.on_drain();
}

/// A route below /admin/, the names that its query may have, and whether it reads a body.
struct admin_route {
  std::string_view name, method;
  void (*answer)(gateway_ptr self, const exchange_ptr& exchange);
  std::span<const std::string_view> query{};
  bool body = false;
};

/// Refuses what a route would not read: a worker that is named to POST /admin/drain must not drain
/// the service. An empty object says nothing; some clients send one with every POST.
void refuse_body(std::string_view body, const std::string& route) {
  std::string said;
  for (const char c : body) {
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    said += c;
    if (said.size() > 2) break;
  }
  if (said.empty() || said == "{}") return;
  throw net::invalid_value({}, route
                                   + " takes no body: leave it out (a worker is drained by POST "
                                     "/admin/drain-worker, a pool scaled by POST /admin/scale)");
}

constexpr std::array<std::string_view, 2> trace_query{"for", "newest"};
constexpr std::array<std::string_view, 3> events_query{"after", "since", "wait"};

const std::array admin_routes{
    admin_route{"status", "GET", answer_status},
    admin_route{"console", "GET", answer_console},
    admin_route{"pools", "GET", answer_pools},
    admin_route{"events", "GET", answer_events, events_query},
    admin_route{"trace", "POST", answer_trace, trace_query},
    admin_route{"drain", "POST", answer_drain},
    admin_route{"chaos", "POST", answer_chaos, {}, true},
    admin_route{"reload", "POST", answer_reload},
    admin_route{"scale", "POST", answer_scale, {}, true},
    admin_route{"drain-worker", "POST", answer_drain_worker, {}, true},
};

} // namespace

void answer_admin(gateway_ptr self, const exchange_ptr& exchange, const std::string& what) {
  const auto& request = exchange->request();
  refuse_pages(self->state, request);
  for (const auto& x : admin_routes) {
    if (x.name != what) continue;
    if (x.method != request.method)
      throw net::method_not_allowed(request.method, std::string{x.method});
    const auto route = std::string{x.method} + " /admin/" + std::string{x.name};
    net::check_query(request.query, x.query, route);
    if (!x.body) refuse_body(request.body, route);
    return x.answer(self, exchange);
  }
  throw net::route_not_found(request.method, request.path);
}

} // namespace lamella::actors
