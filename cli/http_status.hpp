/// Statuses of HTTP that commands tell apart.
#pragma once

namespace lamella::cli::http_status {

constexpr int ok = 200, accepted = 202;
constexpr int bad_request = 400, unauthorized = 401, not_found = 404, conflict = 409;
constexpr int too_many_requests = 429, service_unavailable = 503;

} // namespace lamella::cli::http_status
