/// `GET /admin/status`: all actors are queried concurrently.
#pragma once

#include "actors/gateway/gateway_state.hpp"

namespace lamella::actors {

/// Answers with the replies that arrive in time; only that of MEMBERSHIP is required. Throws
/// net::loading while there is no MEMBERSHIP.
void answer_status(gateway_ptr self, const exchange_ptr& exchange);

} // namespace lamella::actors
