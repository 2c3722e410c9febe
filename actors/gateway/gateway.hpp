/// GATEWAY: HTTP in, answers out; parent of the requests.
#pragma once

#include "actors/gateway/gateway_state.hpp"

namespace lamella::actors {

gateway_actor::behavior_type gateway(gateway_actor::stateful_pointer<gateway_state> self,
                                     gateway_config config);

/// Answers a probe at once on the calling I/O thread; false when the request is not a probe.
bool answer_probe(const health_board& health, net::metrics& metrics,
                  const net::http_exchange_ptr& exchange);

} // namespace lamella::actors
