/// What reloads are to the gateway: those that operators ask for, and the rules that they leave.
#pragma once

#include "actors/gateway/gateway.hpp"

namespace lamella::actors {

/// POST /admin/reload: in a thread of its own, for it reads files; one at a time, else 409.
void answer_reload(gateway_ptr self, const exchange_ptr& exchange);

/// What the newest pipeline serves, by the rules of the last reload.
void serve_by_rules(gateway_ptr self, const service_ptr& server);

} // namespace lamella::actors
