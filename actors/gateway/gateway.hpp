/// GATEWAY: HTTP in, answers out; parent of the requests.
#pragma once

#include "actors/gateway/link_traffic.hpp"
#include "actors/membership/membership.hpp"
#include "actors/request/aside.hpp"
#include "actors/request/reload.hpp"
#include "actors/request/request.hpp"
#include "actors/shared/health.hpp"
#include "actors/worker/child_keeper.hpp"
#include "net/api/api_keys.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace lamella::actors {

/// Whom to ask who looks after whom: the pipeline's supervisor, and the keeper of child processes
/// (null: there are none).
struct supervision {
  caf::actor pipeline;
  child_keeper_actor children;
};

/// A reload: for requests that come from now on, and for whoever asks.
struct new_rules {
  request_rules rules;
  net::api_keys keys, admin_keys;
};

/// `exchange`: an HTTP request to route. A service: the model is there, or the pipeline was
/// rebuilt. `drain`: take nothing new; answered when the last request has ended. `lost`: there is
/// no pipeline until the next service. `tick`: looks at those that pause.
using gateway_actor = caf::typed_actor<caf::reacts_to<exchange_ptr>, caf::reacts_to<service_ptr>,
                                       caf::replies_to<drain_atom>::with<bool>,
                                       caf::reacts_to<membership_actor>, caf::reacts_to<wake_atom>,
                                       caf::reacts_to<lost_atom>, caf::reacts_to<caf::tick_atom>,
                                       caf::reacts_to<supervision>, caf::reacts_to<new_rules>>;

struct gateway_config {
  std::shared_ptr<health_board> health;
  std::shared_ptr<net::metrics> numbers;
  aside_actor aside; ///< writes pages of numbers, and answers what takes long
  std::shared_ptr<const byte_budget> bodies; ///< of the requests; null: nobody counts them
  net::api_keys keys;                        ///< of the public listener
  net::api_keys admin_keys;                  ///< of the admin listener, but for probes and metrics
  bool public_probes = true;                 ///< both are on the public listener, too
  std::string version;
  std::string pool_name = "main", partition = "heads";
  uint32_t attention_members = 1;
  std::function<void()> on_drain;           ///< an operator asked for it
  std::function<reload_report()> on_reload; ///< likewise; reads files
  bool chaos = false;                       ///< workers may be injured
  outside_world world;
};

struct gateway_state {
  gateway_config config;
  service_ptr server; ///< null while loading
  membership_actor members;
  supervision tree;
  std::optional<request_rules> rules; ///< of the last reload; until then each service's own
  std::weak_ptr<bool> reloading;      ///< lives while a reload is under way
  link_traffic traffic;
  uint64_t log_dropped = 0; ///< lines, told to the numbers
  std::map<caf::actor_addr, request_actor> requests;
  uint64_t next_request = 0;
  bool draining = false;
  bool down = false;    ///< there is no pipeline, after there was one
  bool looking = false; ///< a look at those that pause is on its way
  bool alarm = false;   ///< they do for too long
  std::vector<caf::typed_response_promise<bool>> drained;
  const char* name = "gateway";
};

using gateway_ptr = gateway_actor::stateful_pointer<gateway_state>;

gateway_actor::behavior_type gateway(gateway_actor::stateful_pointer<gateway_state> self,
                                     gateway_config config);

/// Answers a probe at once on the calling I/O thread; false when the request is none.
bool answer_probe(const health_board& health, const net::http_exchange_ptr& exchange);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::gateway_config)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::supervision)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::new_rules)
