#include "net/http/cors_policy.hpp"

#include <algorithm>

namespace lamella::net {

namespace {

/// A browser need not ask again for so long.
constexpr const char* asked_for_seconds = "7200";

/// Names of fields with commas between them; anything else is not sent back.
bool is_name_list(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'
           || c == '_' || c == ',' || c == ' ';
  });
}

} // namespace

http_headers cors_policy::answer_fields(std::string_view method,
                                        const http_headers& request) const {
  http_headers result;
  if (origins_.empty()) return result;
  const bool everybody = std::ranges::find(origins_, "*") != origins_.end();
  if (!everybody) result.add("vary", "origin");
  const auto* origin = request.find("origin");
  if (!origin || !(everybody || std::ranges::find(origins_, *origin) != origins_.end()))
    return result;
  result.add("access-control-allow-origin", everybody ? "*" : *origin);
  if (method != "OPTIONS" || !request.find("access-control-request-method")) {
    result.add("access-control-expose-headers", "*");
    return result;
  }
  result.add("access-control-allow-methods", "GET, HEAD, POST, DELETE");
  if (const auto names = request.get("access-control-request-headers"); is_name_list(names))
    result.add("access-control-allow-headers", std::string{names});
  if (request.get("access-control-request-private-network") == "true")
    result.add("access-control-allow-private-network", "true");
  result.add("access-control-max-age", asked_for_seconds);
  return result;
}

} // namespace lamella::net
