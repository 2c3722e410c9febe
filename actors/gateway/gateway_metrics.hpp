/// `GET /metrics`, and what each answer adds to it.
#pragma once

#include "actors/gateway/gateway_state.hpp"
#include "net/api/api_route.hpp"

namespace lamella::actors {

/// Counts an answer of GATEWAY itself.
void count_answer(net::metrics& metrics, const exchange_ptr& exchange, net::api_route route,
                  int status);

/// Workers are asked what they have sent; those that do not answer in time have sent nothing new.
void answer_metrics(gateway_ptr self, const exchange_ptr& exchange);

} // namespace lamella::actors
