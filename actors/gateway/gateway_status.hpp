/// What the gateway answers to `GET /admin/status`: everybody is asked at once.
#pragma once

#include "actors/gateway/gateway.hpp"

namespace lamella::actors {

/// Answers with what those say who answer in time; only MEMBERSHIP must. Throws net::loading while
/// there is none.
void answer_status(gateway_ptr self, const exchange_ptr& exchange);

} // namespace lamella::actors
