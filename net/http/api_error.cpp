#include "net/http/api_error.hpp"

#include "base/json_writer.hpp"

namespace lamella::net {

namespace {

api_error make(int status, std::string type, std::string code, std::string message) {
  api_error error;
  error.status = status;
  error.type = std::move(type);
  error.code = std::move(code);
  error.message = std::move(message);
  return error;
}

api_error bad(std::string code, std::string param, std::string message) {
  api_error error = make(400, "invalid_request_error", std::move(code), std::move(message));
  error.param = std::move(param);
  return error;
}

/// In the words by which clients know that the context is full: LiteLLM and others look for them.
api_error too_long(std::string param, token_excess excess, const std::string& but) {
  auto error = bad("context_length_exceeded", std::move(param),
                   "This model's maximum context length is " + std::to_string(excess.most)
                       + " tokens. However, " + but);
  error.excess = excess;
  return error;
}

api_error unavailable(std::string code, std::string message, uint32_t retry_after_ms) {
  api_error error = make(503, "unavailable_error", std::move(code), std::move(message));
  error.retry_after_ms = retry_after_ms;
  error.retryable = true;
  return error;
}

/// Foreign text inside a message: printable ASCII and short.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 100)) out += c >= 0x20 && c < 0x7F ? c : '?';
  if (text.size() > 100) out += "...";
  return out + "\"";
}

} // namespace

api_error invalid_json(std::string message) { return bad("invalid_json", "", std::move(message)); }

api_error invalid_value(std::string param, std::string message) {
  return bad("invalid_value", std::move(param), std::move(message));
}

api_error invalid_schema(std::string param, std::string message) {
  return bad("invalid_schema", std::move(param), std::move(message));
}

api_error unknown_parameter(std::string param) {
  std::string message = "unknown parameter " + quoted(param) + ": remove it";
  return bad("unknown_parameter", std::move(param), std::move(message));
}

api_error unsupported_parameter(std::string param, std::string message) {
  return bad("unsupported_parameter", std::move(param), std::move(message));
}

api_error unsupported_endpoint(std::string message) {
  return bad("unsupported_endpoint", "model", std::move(message));
}

api_error context_length_exceeded(uint64_t prompt_tokens, uint64_t max_tokens, uint64_t context,
                                  std::string param, std::string_view answer_field) {
  const bool fits = prompt_tokens < context;
  const auto answer = " and " + std::to_string(max_tokens)
                      + " more were requested: shorten the prompt or lower "
                      + std::string{answer_field};
  return too_long(std::move(param), {prompt_tokens, fits ? max_tokens : 0, context},
                  "the prompt has " + std::to_string(prompt_tokens) + " tokens"
                      + (max_tokens > 0 ? answer : ": shorten it"));
}

api_error prompt_too_long(uint64_t prompt_tokens, uint64_t allowed, std::string param) {
  return too_long(std::move(param), {prompt_tokens, 0, allowed},
                  "the prompt has " + std::to_string(prompt_tokens)
                      + " tokens, more than limits.prompt_tokens of this server: "
                        "shorten it");
}

api_error prompt_cannot_fit(uint64_t fewest_tokens, uint64_t allowed, std::string param) {
  return too_long(std::move(param), {fewest_tokens, 0, allowed},
                  "the prompt has at least " + std::to_string(fewest_tokens)
                      + " tokens: shorten it");
}

api_error never_fits(std::string message) {
  return bad("context_length_exceeded", "",
             "this model's maximum context length is exceeded on this server: " + message);
}

api_error bad_request(std::string message) { return bad("", "", std::move(message)); }

api_error invalid_api_key() {
  return make(401, "authentication_error", "invalid_api_key",
              "missing or wrong API key: send it as \"Authorization: Bearer KEY\" or as "
              "\"x-api-key: KEY\"");
}

api_error insufficient_permissions(std::string message) {
  return make(403, "permission_error", "insufficient_permissions", std::move(message));
}

api_error model_not_found(std::string_view model) {
  api_error error = make(404, "invalid_request_error", "model_not_found",
                         "the model " + quoted(model)
                             + " is not served here: GET /v1/models lists the served ones");
  error.param = "model";
  return error;
}

api_error response_not_found(std::string_view id, std::string param) {
  api_error error = make(404, "invalid_request_error", "response_not_found",
                         "the response " + quoted(id)
                             + " is not kept here (any more): send the whole conversation as "
                               "input");
  error.param = std::move(param);
  return error;
}

api_error route_not_found(std::string_view method, std::string_view path,
                          std::string_view instead) {
  std::string message = "there is no route " + std::string(method) + " " + quoted(path);
  if (!instead.empty()) message.append(": ").append(instead);
  return make(404, "invalid_request_error", "route_not_found", std::move(message));
}

api_error method_not_allowed(std::string_view method, std::string allow) {
  api_error error = make(405, "invalid_request_error", "method_not_allowed",
                         "method " + std::string(method) + " is not allowed here: use " + allow);
  error.allow = std::move(allow);
  return error;
}

api_error body_too_large(uint64_t limit_bytes) {
  return make(413, "invalid_request_error", "body_too_large",
              "the body is larger than the limit of " + std::to_string(limit_bytes) + " bytes");
}

api_error unsupported_media_type(std::string_view content_type) {
  return make(415, "invalid_request_error", "unsupported_media_type",
              "the content type " + quoted(content_type) + " is not JSON: send application/json");
}

api_error unsupported_content_coding(std::string_view coding) {
  api_error error =
      make(415, "invalid_request_error", "unsupported_content_coding",
           "the body is encoded as " + quoted(coding)
               + ": send it plain, without Content-Encoding or with Content-Encoding: identity");
  error.accept_encoding = "identity"; // RFC 9110, 12.5.3 and 15.5.16
  return error;
}

api_error deadline_exceeded(std::string message) {
  api_error error = make(408, "timeout_error", "deadline_exceeded", std::move(message));
  error.should_retry = false; // official clients retry 408 by themselves
  return error;
}

api_error queue_full(uint32_t retry_after_ms) {
  api_error error =
      make(429, "rate_limit_error", "queue_full", "the queue of the server is full: retry later");
  error.retry_after_ms = retry_after_ms;
  error.retryable = true;
  return error;
}

api_error rate_limit_exceeded(std::string message, uint32_t retry_after_ms) {
  api_error error = make(429, "rate_limit_error", "rate_limit_exceeded", std::move(message));
  error.retry_after_ms = retry_after_ms;
  error.retryable = true;
  return error;
}

api_error internal_error(std::string message) {
  return make(500, "server_error", "internal_error", std::move(message));
}

api_error request_poisoned() {
  api_error error =
      internal_error("this request crashes the workers that serve it: do not retry it, "
                     "and report its request id to the operator");
  error.should_retry = false;
  error.detail = R"({"reason":"request_poisoned"})";
  return error;
}

api_error loading(std::string detail) {
  api_error error = unavailable("loading", "the model is still loading: retry soon", 5'000);
  error.detail = std::move(detail);
  return error;
}

api_error draining() {
  return unavailable("draining", "the server is shutting down: try another one", 5'000);
}

api_error no_capacity(std::string message) {
  return unavailable("no_capacity", std::move(message), 5'000);
}

api_error recovery_failed(std::string message) {
  return unavailable("recovery_failed", std::move(message), 5'000);
}

namespace {

/// What Anthropic's API calls an error of that status.
std::string_view anthropic_type(int status) {
  switch (status) {
  case 401:
    return "authentication_error";
  case 403:
    return "permission_error";
  case 404:
    return "not_found_error";
  case 408:
    return "timeout_error";
  case 413:
    return "request_too_large";
  case 429:
    return "rate_limit_error";
  case 503:
    return "overloaded_error";
  default:
    return status < 500 ? "invalid_request_error" : "api_error";
  }
}

/// In Anthropic's words, by which clients of that API know that they must shorten a conversation.
std::string anthropic_message(const api_error& error) {
  if (!error.excess) return error.message;
  const auto& x = *error.excess;
  const auto n = [](uint64_t count) { return std::to_string(count); };
  if (x.answer == 0)
    return "prompt is too long: " + n(x.prompt) + " tokens > " + n(x.most) + " maximum";
  return "input length and `max_tokens` exceed context limit: " + n(x.prompt) + " + " + n(x.answer)
         + " > " + n(x.most) + ", decrease input length or `max_tokens` and try again";
}

std::string anthropic_body(const api_error& error, std::string_view request_id) {
  json_writer w;
  w.begin_object().member("type", "error").key("error").begin_object();
  w.member("type", anthropic_type(error.status)).member("message", anthropic_message(error));
  if (!error.param.empty()) w.member("param", error.param);
  if (!error.code.empty()) w.member("code", error.code);
  w.end_object();
  if (!request_id.empty()) w.member("request_id", request_id);
  return w.end_object().take();
}

} // namespace

error_format error_format_of(std::string_view path) {
  constexpr std::string_view messages = "/v1/messages";
  const bool within = path.starts_with(messages)
                      && (path.size() == messages.size() || path[messages.size()] == '/');
  return within ? error_format::anthropic : error_format::openai;
}

std::string error_body(const api_error& error, std::string_view request_id, error_format format) {
  if (format == error_format::anthropic) return anthropic_body(error, request_id);
  json_writer w;
  const auto text_or_null = [&](std::string_view name, const std::string& value) {
    if (value.empty())
      w.null_member(name);
    else
      w.member(name, value);
  };
  w.begin_object()
      .key("error")
      .begin_object()
      .member("message", error.message)
      .member("type", error.type);
  text_or_null("param", error.param);
  text_or_null("code", error.code);
  if (!request_id.empty() || error.retryable || !error.detail.empty()) {
    w.key("lamella").begin_object();
    if (!request_id.empty()) w.member("request_id", request_id);
    w.member("retryable", error.retryable);
    if (!error.detail.empty()) w.key("detail").raw(error.detail);
    w.end_object();
  }
  w.end_object().end_object();
  return w.take();
}

http_headers error_headers(const api_error& error) {
  http_headers headers{{"content-type", "application/json"}};
  if (error.retry_after_ms) {
    // Whole seconds, rounded up: a client that reads only this one must not come too early.
    headers.add("retry-after", std::to_string((uint64_t{*error.retry_after_ms} + 999) / 1000));
    headers.add("retry-after-ms", std::to_string(*error.retry_after_ms));
  }
  if (error.should_retry) headers.add("x-should-retry", *error.should_retry ? "true" : "false");
  if (!error.allow.empty()) headers.add("allow", error.allow);
  if (!error.accept_encoding.empty()) headers.add("accept-encoding", error.accept_encoding);
  if (error.status == 401) headers.add("www-authenticate", "Bearer");
  return headers;
}

void respond_error(http_exchange& exchange, const api_error& error) {
  const auto& request = exchange.request();
  exchange.respond(error.status, error_headers(error),
                   error_body(error, request.request_id, error_format_of(request.path)));
}

} // namespace lamella::net
