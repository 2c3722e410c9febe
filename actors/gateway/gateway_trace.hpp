/// The route by which operators see the pipeline.
#pragma once

#include "actors/gateway/gateway_state.hpp"

namespace lamella::actors {

/// `POST /admin/trace?for=SECONDS`: all workers record for so long, and the answer is a trace.
/// Throws net::api_error where it is refused at once: 409 while another recording is under way.
void answer_trace(gateway_ptr self, const exchange_ptr& exchange);

} // namespace lamella::actors
