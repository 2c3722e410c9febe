#include "net/api/api_route.hpp"

#include "net/http/api_error.hpp"

#include <array>

namespace lamella::net {

namespace {

enum class methods : unsigned char { get, post, get_or_delete };

struct row {
  std::string_view path;
  api_route route;
  methods allowed;
};

constexpr std::array rows{
    row{"/v1/chat/completions", api_route::chat_completions, methods::post},
    row{"/v1/completions", api_route::completions, methods::post},
    row{"/v1/responses", api_route::responses, methods::post},
    row{"/v1/messages", api_route::messages, methods::post},
    row{"/v1/messages/count_tokens", api_route::count_tokens, methods::post},
    row{"/v1/models", api_route::models, methods::get},
    row{"/v1/embeddings", api_route::embeddings, methods::post},
    row{"/tokenize", api_route::tokenize, methods::post},
    row{"/v1/tokenize", api_route::tokenize, methods::post},
    row{"/detokenize", api_route::detokenize, methods::post},
    row{"/v1/detokenize", api_route::detokenize, methods::post},
    row{"/tokenizer_info", api_route::tokenizer_info, methods::get},
    row{"/v1/tokenizer_info", api_route::tokenizer_info, methods::get},
    row{"/live", api_route::live, methods::get},
    row{"/v2/health/live", api_route::live, methods::get},
    row{"/ready", api_route::ready, methods::get},
    row{"/v2/health/ready", api_route::ready, methods::get},
    row{"/health", api_route::health, methods::get},
    row{"/metrics", api_route::metrics, methods::get},
    row{"/version", api_route::version, methods::get},
    row{"/", api_route::page, methods::get},
    row{"/chat", api_route::page, methods::get},
};

/// APIs of others that clients try, and what does the same here.
struct other_api {
  std::string_view path; ///< and what is below it
  std::string_view instead;
};

constexpr std::string_view no_pooling =
    "this server generates text and serves no models that rank, "
    "classify or embed: use POST /v1/chat/completions";

constexpr std::array other_apis{
    other_api{"/v1/responses", "of the Responses API this server has POST /v1/responses, and GET "
                               "and DELETE /v1/responses/{id}"},
    other_api{"/v1/messages", "of the Messages API this server has POST /v1/messages and POST "
                              "/v1/messages/count_tokens"},
    other_api{"/v1/rerank", no_pooling},
    other_api{"/v1/score", no_pooling},
    other_api{"/rerank", no_pooling},
    other_api{"/score", no_pooling},
    other_api{"/pooling", no_pooling},
    other_api{"/classify", no_pooling},
    other_api{"/api", "Ollama's API is not served here: use POST /v1/chat/completions, GET "
                      "/v1/models"},
};

std::string_view instead_of(std::string_view path) {
  for (const auto& [known, instead] : other_apis)
    if (path.starts_with(known) && (path.size() == known.size() || path[known.size()] == '/'))
      return instead;
  return {};
}

/// Routes of one thing, whose id is the rest of the path.
struct prefix_row {
  std::string_view path;
  api_route route;
  methods allowed;
  bool slashes; ///< an id may have some
};

constexpr std::array prefix_rows{
    prefix_row{"/v1/models/", api_route::model, methods::get, true},
    prefix_row{"/v1/responses/", api_route::response, methods::get_or_delete, false},
    prefix_row{"/ui/", api_route::page, methods::get, false},
};

/// What clients of the Responses API send to a path of one word, as `compact` and `input_tokens`:
/// it is no response, whose ids begin otherwise.
bool asks_for_more_of_responses(std::string_view method, const prefix_row& match,
                                std::string_view rest) {
  return match.route == api_route::response && method == "POST" && !rest.starts_with("resp_");
}

constexpr std::string_view admin_prefix = "/admin/";

const char* names_of(methods allowed) {
  if (allowed == methods::post) return "POST, OPTIONS";
  return allowed == methods::get ? "GET, HEAD, OPTIONS" : "GET, HEAD, DELETE, OPTIONS";
}

void check_method(std::string_view method, methods allowed) {
  const bool read = method == "GET" || method == "HEAD";
  const bool fits = method == "OPTIONS"
                    || (allowed == methods::post  ? method == "POST"
                        : allowed == methods::get ? read
                                                  : read || method == "DELETE");
  if (!fits) throw method_not_allowed(method, names_of(allowed));
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

} // namespace

bool is_probe(api_route route) {
  return route == api_route::live || route == api_route::ready || route == api_route::health
         || route == api_route::metrics || route == api_route::version;
}

api_route_match find_route(std::string_view method, std::string_view path) {
  std::string_view canonical = path;
  if (canonical.size() > 2 && canonical.ends_with('/')) canonical.remove_suffix(1);
  for (const row& candidate : rows)
    if (candidate.path == canonical) {
      check_method(method, candidate.allowed);
      return {candidate.route, {}, names_of(candidate.allowed)};
    }
  for (const auto& candidate : prefix_rows) {
    if (!canonical.starts_with(candidate.path)) continue;
    const auto rest = canonical.substr(candidate.path.size());
    auto id = percent_decode(rest);
    if (!id || id->empty() || (!candidate.slashes && rest.find('/') != rest.npos)
        || asks_for_more_of_responses(method, candidate, rest))
      throw route_not_found(method, path, instead_of(canonical));
    check_method(method, candidate.allowed);
    return {candidate.route, std::move(*id), names_of(candidate.allowed)};
  }
  if (canonical.starts_with(admin_prefix))
    return {api_route::admin, std::string(canonical.substr(admin_prefix.size())), {}};
  throw route_not_found(method, path, instead_of(canonical));
}

std::string_view route_name(api_route route) {
  switch (route) {
  case api_route::model:
    return "/v1/models/{id}";
  case api_route::response:
    return "/v1/responses/{id}";
  case api_route::admin:
    return "/admin";
  default:
    break;
  }
  for (const row& candidate : rows)
    if (candidate.route == route) return candidate.path;
  return "other";
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view{} : query.substr(end + 1);
    const size_t equals = pair.find('=');
    if (pair.substr(0, equals) != name) continue;
    if (equals == std::string_view::npos) return std::string{};
    return percent_decode(pair.substr(equals + 1));
  }
  return std::nullopt;
}

} // namespace lamella::net
