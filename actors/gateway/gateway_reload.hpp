/// Reloads in the gateway: requests of operators, and the resulting rules.
#pragma once

#include "actors/gateway/gateway_state.hpp"

namespace lamella::actors {

/// POST /admin/reload: in a thread of its own, because it reads files; one at a time, else 409.
void answer_reload(gateway_ptr self, const exchange_ptr& exchange);

/// The service of the newest pipeline, with the rules of the last reload.
void serve_by_rules(gateway_ptr self, const service_ptr& server);

} // namespace lamella::actors
