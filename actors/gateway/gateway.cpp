#include "actors/gateway/gateway.hpp"

#include "actors/gateway/gateway_admin.hpp"
#include "actors/gateway/gateway_console.hpp"
#include "actors/gateway/gateway_metrics.hpp"
#include "actors/gateway/gateway_reload.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/tokens.hpp"
#include "actors/request/prompt_tokens.hpp"
#include "actors/shared/build_info.hpp"
#include "actors/shared/exceptions.hpp"
#include "actors/shared/explain.hpp"
#include "net/api/api_route.hpp"
#include "net/api/query.hpp"
#include "net/api/responses/responses_writer.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

/// Between two looks at the requests that pause.
constexpr caf::timespan poll_interval = std::chrono::milliseconds{100};

/// What is counted where the client was gone before its answer.
constexpr int client_left = 499;

void count(gateway_ptr self, const exchange_ptr& exchange, net::api_route route, int status) {
  count_answer(*self->state.config.metrics, exchange, route, status);
}

/// Public routes want a key of the public list, admin routes one of the admin list.
void check_key(const gateway_state& st, const net::http_request& request, net::api_route route) {
  if (net::is_probe(route) || route == net::api_route::metrics) {
    if (request.listener == "admin" || st.config.public_probes) return;
    throw net::route_not_found(request.method, request.path);
  }
  if (route == net::api_route::page) return; // files that everybody may see
  const bool admin = route == net::api_route::admin;
  if (admin && request.listener != "admin")
    throw net::route_not_found(request.method, request.path);
  const auto& keys = admin ? st.config.admin_keys : st.config.keys;
  if (!keys.admits(request.headers)) throw net::invalid_api_key();
}

const service& serving(gateway_ptr self) {
  const auto& st = self->state;
  if (!st.server) {
    const auto answer = st.config.health->ask(health_board::probe::ready, self->clock().now());
    throw net::loading(answer.body);
  }
  return *st.server;
}

/// Refuses new requests while a role has no worker, or while accepted requests stall beyond
/// max_pause (unless a poison-request search is isolating them).
void check_capacity(gateway_ptr self) {
  const auto& st = self->state;
  if (const auto role = st.config.health->lacking(); !role.empty())
    throw net::no_capacity("the pool '" + role + "' has no worker: retry soon");
  const bool hunting = st.server->suspects && st.server->suspects->hunting();
  if (hunting) return;
  if (const auto pause = st.config.health->pauses.look(self->clock().now()); pause.too_long)
    throw net::no_capacity("accepted requests have been paused by a loss for "
                           + std::to_string(pause.longest.count()) + " ms: retry soon");
}

/// Reports how many requests are paused, and whether one stalls beyond max_pause.
void look_at_pauses(gateway_ptr self) {
  auto& st = self->state;
  const auto now = st.config.health->pauses.look(self->clock().now());
  const bool hunting = st.server && st.server->suspects && st.server->suspects->hunting();
  st.config.health->set_hunting(hunting);
  st.config.metrics->set_recovering(now.recovering, now.too_long);
  if (now.too_long != std::exchange(st.alarm, now.too_long)) {
    if (now.too_long)
      spdlog::error("recovery takes longer than recovery.max_pause_seconds pause_ms={} requests={} "
                    "pipeline={}: {}",
                    now.longest.count(), now.recovering, now.down ? "lost" : "there",
                    hunting ? "a poison request is being isolated"
                            : "new requests are rejected meanwhile");
    else
      spdlog::info("recovery alarm cleared");
  }
  st.looking = now.down || now.recovering > 0;
  if (st.looking) self->delayed_send(self, poll_interval, caf::tick_atom_v);
}

/// The pipeline of all requests is lost.
void on_lost(gateway_ptr self) {
  auto& st = self->state;
  st.down = true;
  st.config.health->pauses.pipeline_lost(self->clock().now());
  for (auto& [addr, child] : st.requests) self->send(child.actor, lost_atom_v);
  if (!st.looking) look_at_pauses(self);
}

void start_request(gateway_ptr self, const exchange_ptr& exchange, net::api_route where) {
  auto& st = self->state;
  serving(self);
  // The board knows first: what asks after /ready said no is refused.
  if (st.draining || st.config.health->where() == health_board::phase::draining)
    throw net::draining();
  check_capacity(self);
  const request_id id{++st.next_request};
  const auto& asked = exchange->request();
  auto note = std::make_shared<request_note>();
  auto child = self->spawn(request, st.server, exchange, id, where,
                           st.config.keys.caller(asked.headers), note);
  self->monitor(child);
  st.requests.emplace(caf::actor_cast<caf::actor_addr>(child),
                      running_request{child, id, note, asked.request_id, where, asked.arrived});
  self->send(child, begin_atom_v);
  if (st.down) self->send(child, lost_atom_v);
}

net::model_entry entry_of(const service& s, const std::string& id) {
  return {id, s.model_name, s.created, tokens_of_a_sequence(s), {}};
}

void answer_models(gateway_ptr self, const exchange_ptr& exchange, const std::string* id) {
  const auto& s = serving(self);
  if (id != nullptr) {
    check_model(s, *id);
    exchange->respond(200, net::json_content, net::model_body(entry_of(s, *id)));
    return;
  }
  std::vector<net::model_entry> entries{entry_of(s, s.model_name)};
  for (const auto& alias : s.aliases) entries.push_back(entry_of(s, alias));
  exchange->respond(200, net::json_content, net::models_body(entries));
}

/// A finished response that is kept: shown, or forgotten.
void answer_response(gateway_ptr self, const exchange_ptr& exchange, const std::string& id) {
  const auto& s = serving(self);
  const auto& request = exchange->request();
  const auto caller = self->state.config.keys.caller(request.headers);
  const auto now = s.world.date();
  if (request.method == "DELETE") {
    if (!s.responses || !s.responses->erase(id, caller, now)) throw net::response_not_found(id);
    return exchange->respond(200, net::json_content, net::deleted_response_body(id));
  }
  net::refuse_stream_in_query(request.query);
  const auto found = s.responses ? s.responses->find(id, caller, now) : nullptr;
  if (!found) throw net::response_not_found(id);
  // It may be as long as all that is kept, and is copied to be sent.
  self->send(self->state.config.aside, aside_job{lane_of(found->body.size()), [exchange, found] {
                                                   exchange->respond(200, net::json_content,
                                                                     found->body);
                                                 }});
}

/// Long texts take long: no other request waits behind them.
void answer_aside(gateway_ptr self, const exchange_ptr& exchange, net::api_route where,
                  token_answer (*answer)(const service&, const std::string&)) {
  serving(self);
  const auto& st = self->state;
  const auto run = [server = st.server, metrics = st.config.metrics, exchange, where, answer] {
    if (!exchange->open()) return count_answer(*metrics, exchange, where, client_left);
    int status = 200;
    try {
      net::check_content(exchange->request().headers);
      const auto body = exchange->take_body();
      auto made = answer(*server, body.text);
      auto headers = net::json_content;
      if (!made.ignored_fields.empty())
        headers.add("x-lamella-ignored-fields", std::move(made.ignored_fields));
      exchange->respond(200, std::move(headers), std::move(made.body));
    } catch (const net::api_error& error) {
      status = error.status;
      net::respond_error(*exchange, error);
    } catch (const std::exception& error) {
      status = 500;
      spdlog::error("gateway path={} error=\"{}\"", exchange->request().path, error.what());
      net::respond_error(*exchange, net::internal_error("internal error"));
    }
    count_answer(*metrics, exchange, where, status);
  };
  self->send(st.config.aside, aside_job{lane_of(exchange->request().body.size()), run});
}

/// Public routes take no query. What is there all the same is treated as an unknown field of a
/// body: counted, or refused where api.strict is set. Probes and pages take any.
void look_at_query(gateway_ptr self, const net::http_request& request, net::api_route route) {
  if (request.query.empty() || net::is_probe(route) || route == net::api_route::page
      || route == net::api_route::admin || !self->state.server)
    return;
  for (const auto& name : net::unknown_in_query(request.query)) {
    if (self->state.server->rules.limits.strict) throw net::unknown_parameter(name);
    self->state.config.metrics->unknown_param(name);
  }
}

/// Routes one request. Returns the status when it was answered here, 0 when an actor will answer.
int route(gateway_ptr self, const exchange_ptr& exchange, const net::api_route_match& match) {
  switch (match.route) {
  case net::api_route::chat_completions:
  case net::api_route::completions:
  case net::api_route::responses:
  case net::api_route::messages:
    start_request(self, exchange, match.route);
    return 0;
  case net::api_route::response:
    answer_response(self, exchange, match.id);
    return 200;
  case net::api_route::count_tokens:
    answer_aside(self, exchange, match.route, count_tokens);
    return 0;
  case net::api_route::models:
    answer_models(self, exchange, nullptr);
    return 200;
  case net::api_route::model:
    answer_models(self, exchange, &match.id);
    return 200;
  case net::api_route::embeddings:
    throw net::unsupported_endpoint(
        "this server makes no embeddings: it generates text (POST /v1/chat/completions, "
        "/v1/completions, /v1/responses, /v1/messages); ask a server with an embedding model");
  case net::api_route::tokenize:
    answer_aside(self, exchange, match.route, tokenize);
    return 0;
  case net::api_route::detokenize:
    answer_aside(self, exchange, match.route, detokenize);
    return 0;
  case net::api_route::tokenizer_info:
    answer_aside(self, exchange, match.route, tokenizer_info);
    return 0;
  case net::api_route::live:
  case net::api_route::ready:
  case net::api_route::health:
    answer_probe(*self->state.config.health, *self->state.config.metrics, exchange);
    return 0;
  case net::api_route::metrics:
    answer_metrics(self, exchange);
    return 0;
  case net::api_route::version:
    exchange->respond(200, net::json_content,
                      net::version_body(self->state.config.version, build_commit(), build_date()));
    return 200;
  case net::api_route::page:
    answer_page(self->state.config, exchange);
    return 200;
  case net::api_route::admin:
    answer_admin(self, exchange, match.id);
    return 0;
  }
  return 0;
}

void on_exchange(gateway_ptr self, const exchange_ptr& exchange) {
  const auto& request = exchange->request();
  auto where = net::api_route::version;
  try {
    const auto match = net::find_route(request.method, request.path);
    where = match.route;
    if (request.method == "OPTIONS" && where != net::api_route::admin) {
      exchange->respond(204, {{"allow", match.allow}}, {});
      return count(self, exchange, where, 204);
    }
    check_key(self->state, request, match.route);
    look_at_query(self, request, match.route);
    if (const auto status = route(self, exchange, match); status != 0)
      count(self, exchange, where, status);
  } catch (const net::api_error& error) {
    net::respond_error(*exchange, error);
    count(self, exchange, where, error.status);
    if (error.code == "draining")
      self->state.config.metrics->admission_rejected(net::rejection::draining);
    if (error.code == "no_capacity")
      self->state.config.metrics->admission_rejected(net::rejection::no_capacity);
    if (error.code == "loading")
      self->state.config.metrics->admission_rejected(net::rejection::loading);
  } catch (const std::exception& error) {
    spdlog::error("gateway path={} error=\"{}\"", request.path, error.what());
    net::respond_error(*exchange, net::internal_error("internal error"));
    count(self, exchange, where, 500);
  }
}

void check_drained(gateway_ptr self) {
  auto& st = self->state;
  if (!st.draining || !st.requests.empty()) return;
  for (auto& promise : std::exchange(st.drained, {})) promise.deliver(true);
}

} // namespace

bool answer_probe(const health_board& health, net::metrics& metrics,
                  const net::http_exchange_ptr& exchange) {
  const auto& path = exchange->request().path;
  const auto& method = exchange->request().method;
  if (method != "GET" && method != "HEAD") return false;
  auto route = net::api_route::live;
  if (path == "/ready" || path == "/ready/" || path == "/v2/health/ready")
    route = net::api_route::ready;
  else if (path == "/health" || path == "/health/")
    route = net::api_route::health;
  else if (path != "/live" && path != "/live/" && path != "/v2/health/live")
    return false;
  const auto kind = route == net::api_route::ready    ? health_board::probe::ready
                    : route == net::api_route::health ? health_board::probe::health
                                                      : health_board::probe::live;
  auto answer = health.ask(kind, std::chrono::steady_clock::now());
  exchange->respond(answer.status, net::json_content, std::move(answer.body));
  count_answer(metrics, exchange, route, answer.status);
  return true;
}

gateway_actor::behavior_type gateway(gateway_actor::stateful_pointer<gateway_state> self,
                                     gateway_config config) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  self->set_exit_handler([self](const caf::exit_msg& x) {
    // Requests may wait for replies that will never come.
    for (auto& [addr, child] : self->state.requests) self->send_exit(child.actor, x.reason);
    // CAF answers nothing for a promise that is dropped, and who drains would wait for ever.
    for (auto& promise : std::exchange(self->state.drained, {})) promise.deliver(false);
    self->quit(x.reason);
  });
  self->set_down_handler([self](const caf::down_msg& down) {
    if (down.reason)
      spdlog::error("request actor crashed reason=\"{}\"", explain(self->system(), down.reason));
    self->state.requests.erase(down.source);
    check_drained(self);
  });
  return {
      [self](const exchange_ptr& exchange) { on_exchange(self, exchange); },
      [self](const service_ptr& server) {
        serve_by_rules(self, server);
        self->state.down = false;
        self->state.config.health->pauses.pipeline_back();
        self->state.config.health->set_served();
        for (auto& [addr, child] : self->state.requests)
          self->send(child.actor, self->state.server);
      },
      [self](const new_rules& x) {
        auto& st = self->state;
        st.config.keys = x.keys;
        st.config.admin_keys = x.admin_keys;
        st.rules = x.rules;
        if (st.server) serve_by_rules(self, st.server);
      },
      [self](const supervision& x) { self->state.tree = x; },
      [self](drain_atom) -> caf::result<bool> {
        self->state.draining = true;
        auto promise = self->make_response_promise<bool>();
        self->state.drained.push_back(promise);
        check_drained(self);
        return promise;
      },
      [self](lost_atom) { on_lost(self); },
      [self](caf::tick_atom) { look_at_pauses(self); },
      [self](const membership_actor& members) { self->state.members = members; },
      // The drain ran out of time: what is left ends now.
      [self](wake_atom) {
        for (auto& [addr, child] : self->state.requests) self->send(child.actor, drain_atom_v);
      },
  };
}

} // namespace lamella::actors
