/// REQUEST: owns prompt, parameters and committed tokens, which survive the loss of devices.
#pragma once

#include "actors/request/request_state.hpp"

namespace lamella::actors {

/// `route`: a generating one, whose API it speaks. `caller`: its owner; requests of different
/// callers share no KV. `note`: where it writes down how it goes; may be null.
request_actor::behavior_type request(request_ptr self, service_ptr server, exchange_ptr exchange,
                                     request_id id, net::api_route route, uint64_t caller,
                                     request_note_ptr note);

} // namespace lamella::actors
