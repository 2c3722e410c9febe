/// How the answers of one API are written.
#pragma once

#include "net/api/api_response.hpp"
#include "net/http/api_error.hpp"
#include "net/http/sse.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// Writes one answer: as one body, or as the server-sent events of a stream, in the order in which
/// these functions are called. Not thread-safe.
class answer_writer {
public:
  virtual ~answer_writer() = default;

  /// The whole answer. `metrics`: null where they were not asked for.
  virtual std::string body(std::span<const response_choice> choices, const usage_counts& usage,
                           const response_metrics* metrics) = 0;

  /// A choice begins. `running`, here and below: the usage up to now.
  virtual std::string begin(uint32_t index, const usage_counts& running) = 0;
  /// More text of a choice, with the log probabilities of its tokens (null: not asked for).
  virtual std::string text(uint32_t index, std::string_view piece,
                           const std::vector<token_logprobs>* logprobs,
                           const usage_counts& running) = 0;
  /// More of the reasoning of a choice: before its text, or between two of its parts.
  virtual std::string reasoning(uint32_t index, std::string_view piece,
                                const std::vector<token_logprobs>* logprobs,
                                const usage_counts& running) = 0;
  /// Call number `call` of a choice begins; its text is over.
  virtual std::string call(uint32_t index, uint32_t call, std::string_view id,
                           std::string_view name, const usage_counts& running) = 0;
  /// More of the arguments of that call.
  virtual std::string arguments(uint32_t index, uint32_t call, std::string_view piece,
                                const std::vector<token_logprobs>* logprobs,
                                const usage_counts& running) = 0;
  /// The choice is over.
  virtual std::string finish(uint32_t index, finish_reason reason, const stop_reason& stopped_by,
                             const usage_counts& running) = 0;
  /// All choices are over, and so is the stream.
  virtual std::string end(const usage_counts& total) = 0;
  /// An error ends the stream.
  virtual std::string error(const api_error& error, std::string_view request_id) = 0;

  /// What keeps a quiet stream alive.
  virtual std::string_view ping() const { return sse_ping; }
  /// What the ids of calls begin with.
  virtual std::string_view call_prefix() const { return "call_"; }
};

/// Writes chat completions or completions; the parameters are those of stream_chunks.
std::shared_ptr<answer_writer> make_completion_writer(stream_chunks::style style,
                                                      response_head head, bool include_usage,
                                                      bool continuous);

} // namespace lamella::net
