/// The routes of operators in the gateway.
#pragma once

#include "actors/gateway/gateway_state.hpp"

namespace lamella::actors {

/// `/admin/WHAT`. Throws net::api_error where it is refused at once.
void answer_admin(gateway_ptr self, const exchange_ptr& exchange, const std::string& what);

} // namespace lamella::actors
