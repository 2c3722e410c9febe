/// Errors of the HTTP API: status, envelope, headers.
#pragma once

#include "net/http/http_exchange.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

namespace lamella::net {

/// A prompt, and the answer that was asked for, that exceed what a context holds; in tokens. The
/// form of the error for each API says so in the words by which clients of that API know that they
/// have to shorten the conversation.
struct token_excess {
  uint64_t prompt = 0, answer = 0; ///< answer 0: the prompt alone does
  uint64_t most = 0;
};
/// One row of the error table. The named functions below are the rows: call them to make one.
struct api_error : std::exception {
  int status = 500;
  std::string type;
  std::string code;    ///< empty: null
  std::string param;   ///< dotted path of the field; empty: null
  std::string message; ///< what is wrong, the value seen, the allowed range, what to change
  std::optional<uint32_t> retry_after_ms; ///< becomes retry-after and retry-after-ms
  std::optional<bool> should_retry;       ///< becomes x-should-retry
  bool retryable = false;                 ///< error.lamella.retryable
  std::string allow;                      ///< becomes Allow (405)
  std::string accept_encoding;            ///< becomes Accept-Encoding (415)
  std::string detail;                     ///< JSON text, becomes error.lamella.detail; empty: none
  std::optional<token_excess> excess;     ///< of context_length_exceeded, where it is known

  const char* what() const noexcept override { return message.c_str(); }
};

// 400
api_error invalid_json(std::string message);
api_error invalid_value(std::string param, std::string message);
/// A schema, or another output format, that cannot be enforced.
api_error invalid_schema(std::string param, std::string message);
api_error unknown_parameter(std::string param);
api_error unsupported_parameter(std::string param, std::string message);
/// The model does not support the route. Not a 5xx, which clients would retry.
api_error unsupported_endpoint(std::string message);
/// Gives the prompt, the requested answer, and the context of the model, all in tokens, with the
/// phrase "maximum context length" that clients search for; on /v1/messages with Anthropic's.
/// `answer_field`: the field with the length of the answer. `max_tokens` 0: the prompt alone is too
/// long.
api_error context_length_exceeded(uint64_t prompt_tokens, uint64_t max_tokens, uint64_t context,
                                  std::string param = "messages",
                                  std::string_view answer_field = "max_tokens");
/// The prompt alone is longer than the operator allows; the same code, so that clients shorten it.
api_error prompt_too_long(uint64_t prompt_tokens, uint64_t allowed, std::string param);
/// The same, for a prompt that was not tokenised: a lower bound from its bytes.
api_error prompt_cannot_fit(uint64_t fewest_tokens, uint64_t allowed, std::string param);
/// More KV slots or batch seats than the whole service has.
api_error never_fits(std::string message);
/// Broken framing and the like.
api_error bad_request(std::string message);
// 401, 403
api_error invalid_api_key();
api_error insufficient_permissions(std::string message);
// 404, 405, 413, 415
api_error model_not_found(std::string_view model);
/// A response of the Responses API that is not kept (any more), or is another caller's.
api_error response_not_found(std::string_view id, std::string param = {});
/// `instead`: the equivalent route here; empty: none.
api_error route_not_found(std::string_view method, std::string_view path,
                          std::string_view instead = {});
api_error method_not_allowed(std::string_view method, std::string allow);
api_error body_too_large(uint64_t limit_bytes);
api_error unsupported_media_type(std::string_view content_type);
api_error unsupported_content_coding(std::string_view coding);
// 408
api_error deadline_exceeded(std::string message);
// 429
api_error queue_full(uint32_t retry_after_ms);
api_error rate_limit_exceeded(std::string message, uint32_t retry_after_ms);
// 500
api_error internal_error(std::string message);
/// A poison request, which crashes workers: an internal_error that must not be retried.
api_error request_poisoned();
// 503
/// `detail` is JSON with the load progress, or empty.
api_error loading(std::string detail);
api_error draining();
api_error no_capacity(std::string message);
api_error recovery_failed(std::string message);

/// How an API lays out its errors.
enum class error_format : uint8_t {
  openai,   ///< `{"error":{"message","type","param","code","lamella":{...}}}`
  anthropic ///< `{"type":"error","error":{"type","message",...},"request_id":"..."}`
};

/// The format of the API that a path is of.
error_format error_format_of(std::string_view path);

/// The body of an answer, or of the one event that ends a broken stream.
std::string error_body(const api_error& error, std::string_view request_id = {},
                       error_format format = error_format::openai);

/// content-type, retry-after, x-should-retry, allow, accept-encoding, www-authenticate: the headers
/// of the error.
http_headers error_headers(const api_error& error);

/// Answers with error_headers and the error_body of the API that was asked.
void respond_error(http_exchange& exchange, const api_error& error);

} // namespace lamella::net
