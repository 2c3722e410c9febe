/// The GATEWAY's answer to GET /admin/events.
#pragma once

#include "actors/gateway/gateway_state.hpp"

namespace lamella::actors {

/// `after=NUMBER`: events after that one; `since=SECONDS`: no older ones; `wait=SECONDS`: where
/// there is none, waits for the next one, in an actor of its own.
void answer_events(gateway_ptr self, const exchange_ptr& exchange);

} // namespace lamella::actors
