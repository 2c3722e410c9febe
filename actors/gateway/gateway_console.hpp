/// The pages for browsers in the gateway, and what the console shows.
#pragma once

#include "actors/gateway/gateway_state.hpp"

namespace lamella::actors {

/// A file of the console or the chat. Throws net::api_error (404) where that listener has none.
void answer_page(const gateway_config& config, const exchange_ptr& exchange);

/// `GET /admin/console`: health, status, sizes of pools and the samples that the console draws.
/// Consoles that ask within a second get the same page. While there is no MEMBERSHIP, or when it
/// does not answer, `status` is null.
void answer_console(gateway_ptr self, const exchange_ptr& exchange);

/// Whether a page of this listener sends the request: its origin is the host that was asked, by a
/// name of this machine alone (other names may be somebody else's by the next request).
bool is_of_console(const net::http_request& request);

} // namespace lamella::actors
