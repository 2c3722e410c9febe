/// The status of the system, for whoever asks: all actors are queried concurrently.
#pragma once

#include "actors/gateway/gateway_state.hpp"

#include <functional>

namespace lamella::actors {

/// Who hears the status, with the number of requests that pause.
using status_reader = std::function<void(const system_status& status, uint64_t recovering)>;

/// Gathers the replies that arrive in time; only that of MEMBERSHIP, which must be there, is
/// required. One of the two is called, in a turn of the GATEWAY.
void ask_status(gateway_ptr self, status_reader done,
                std::function<void(const caf::error& reason)> failed);

/// `GET /admin/status`: answers with the replies that arrive in time; only that of MEMBERSHIP is
/// required. Throws net::loading while there is no MEMBERSHIP.
void answer_status(gateway_ptr self, const exchange_ptr& exchange);

} // namespace lamella::actors
