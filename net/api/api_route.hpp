/// Which route a request means.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lamella::net {

enum class api_route : unsigned char {
  chat_completions,
  completions,
  responses,
  response,
  messages,
  count_tokens,
  models,
  model,
  embeddings,
  tokenize,
  detokenize,
  tokenizer_info,
  live,
  ready,
  health,
  metrics,
  version,
  page,  ///< for browsers: `/`, `/chat` and anything below /ui/
  admin, ///< anything below /admin/
};

/// Routes that work without a key (probes, version; /metrics is the caller's choice).
bool is_probe(api_route route);

struct api_route_match {
  api_route route;
  std::string id;    ///< of `model` and `response` (percent-decoded) and `admin` (the rest of the
                     ///< path, no leading '/')
  std::string allow; ///< the methods of the route; empty where it says so itself (`admin`)
};

/// Finds the route of an origin-form path. A trailing slash makes no difference; `/v1/tokenize` and
/// `/v2/health/live` and the like are aliases. Throws api_error 404 for an unknown path and 405
/// (with Allow) for a method the route does not have. OPTIONS is left to the caller and never
/// matches 405.
api_route_match find_route(std::string_view method, std::string_view path);

/// The handler label of metrics: the canonical path.
std::string_view route_name(api_route route);

/// Decodes %XX. Empty where an escape is malformed or gives a NUL.
std::optional<std::string> percent_decode(std::string_view text);

/// The value of `name` in a query string, decoded; none when absent.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

} // namespace lamella::net
