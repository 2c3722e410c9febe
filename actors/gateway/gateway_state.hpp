/// The configuration and the state of the GATEWAY, which its parts share.
#pragma once

#include "actors/gateway/console_board.hpp"
#include "actors/gateway/link_traffic.hpp"
#include "actors/gateway/trace_audience.hpp"
#include "actors/protocol/actors.hpp"
#include "actors/request/aside.hpp"
#include "actors/request/reload.hpp"
#include "actors/request/request.hpp"
#include "actors/shared/health.hpp"
#include "actors/worker/child_keeper.hpp"
#include "net/api/api_keys.hpp"
#include "net/http/http_server.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace lamella::actors {

/// Sources of the supervision tree: the supervisor of the pipeline, the keeper of child processes
/// (null: none), and that of this process's seats (null: none).
struct supervision {
  caf::actor pipeline;
  child_keeper_actor children;
  own_seats_actor own{};
};

/// A request that has not ended.
struct running_request {
  request_actor actor;
  request_id number{};
  request_note_ptr note; ///< how it goes
  std::string name;      ///< its X-Request-Id
  net::api_route route{};
  std::chrono::steady_clock::time_point arrived;
};

/// A reload: rules for later requests, and its report.
struct new_rules {
  request_rules rules;
  net::api_keys keys, admin_keys;
};

struct gateway_config {
  std::shared_ptr<health_board> health;
  std::shared_ptr<net::metrics> metrics;
  aside_actor aside;                         ///< renders metrics pages and other long answers
  std::shared_ptr<const byte_budget> bodies; ///< of the requests; null: not limited
  std::function<net::http_counters()> http;  ///< of the server; empty: there is none
  net::api_keys keys;                        ///< of the public listener
  net::api_keys admin_keys;                  ///< of the admin listener, except probes and metrics
  bool public_probes = true;                 ///< probes and metrics are on the public listener, too
  bool public_page = true;                   ///< the chat page is on the public listener
  std::string version;
  std::string pool_name = "main", partition = "heads";
  uint32_t attention_members = 1;
  std::function<void()> on_drain;           ///< requested by an operator
  std::function<reload_report()> on_reload; ///< likewise; reads files
  /// Changes of pools that a reload asked for and that wait for others: "queued". May be empty.
  std::function<std::vector<pool_change>()> queued;
  bool chaos = false; ///< fault injection is allowed
  environment world;
};

struct gateway_state {
  gateway_config config;
  service_ptr server; ///< null while loading
  membership_actor members;
  supervision tree;
  std::optional<request_rules> rules; ///< of the last reload; until then those of the service
  std::weak_ptr<bool> reloading;      ///< alive while a reload is running
  std::weak_ptr<bool> tracing;        ///< alive while somebody records a trace
  std::shared_ptr<trace_audience> watched{}; ///< of the newest one that several may ask for
  link_traffic traffic;
  std::shared_ptr<console_board> console = std::make_shared<console_board>();
  uint64_t log_dropped = 0; ///< lines, already in the metrics
  std::map<caf::actor_addr, running_request> requests;
  uint64_t next_request = 0;
  bool draining = false;
  bool down = false;    ///< there is no pipeline, after there was one
  bool looking = false; ///< a check of paused requests is scheduled
  bool alarm = false;   ///< a request stalls for too long
  std::vector<caf::typed_response_promise<bool>> drained;
  const char* name = "gateway";
};

using gateway_ptr = gateway_actor::stateful_pointer<gateway_state>;

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::gateway_config)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::supervision)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::new_rules)
