/// Answer bodies of the API as text. Pure; members are always written in the same order.
#pragma once

#include "net/api/answer_parts.hpp"
#include "net/api/tool_use.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lamella {
class json_writer;
}

namespace lamella::net {

/// Fields common to all bodies and chunks of one answer.
struct response_head {
  std::string id;      ///< with its prefix, see make_response_id()
  int64_t created = 0; ///< seconds since 1970
  std::string model;   ///< the name the client used
  std::string fingerprint;
  bool service_tier = false; ///< write "service_tier":"default"
};

enum class finish_reason : uint8_t { stop, length, tool_calls };
std::string_view to_string(finish_reason reason);

/// What stopped a choice: nothing to report, a stop string, or a stop token id.
using stop_reason = std::variant<std::monostate, std::string, uint32_t>;

struct token_alternative {
  std::string bytes; ///< of the token, raw
  double logprob = 0;
};

/// Log probabilities at one output position.
struct token_logprobs {
  std::string bytes;                  ///< of the sampled token, raw
  std::optional<double> logprob;      ///< none: null (first echoed token, legacy only)
  std::vector<token_alternative> top; ///< highest first
  /// Code points that it adds to the returned text; none: those of its bytes.
  std::optional<uint32_t> code_points{};
};

/// A token of a prompt, or one that might stand in its place.
struct prompt_candidate {
  uint32_t id = 0;
  uint32_t rank = 0; ///< 1: the most likely
  double logprob = 0;
  std::string bytes;
};

/// By token of a prompt: the token itself, then the most likely others; nothing for the first one.
using prompt_candidates = std::vector<std::vector<prompt_candidate>>;

struct usage_counts {
  uint64_t prompt_tokens = 0;
  uint64_t completion_tokens = 0;
  uint64_t cached_tokens = 0;
  uint64_t reasoning_tokens = 0; ///< of the completion
};

/// One complete choice.
struct response_choice {
  uint32_t index = 0;
  std::string text;
  std::string reasoning{};             ///< before the text; not of completions
  std::vector<part_end> ends{};        ///< where reasoning follows text: those of parts
  std::vector<tool_call> tool_calls{}; ///< chat only
  finish_reason reason = finish_reason::stop;
  stop_reason stopped_by;
  std::optional<std::vector<token_logprobs>> logprobs;
  std::optional<prompt_candidates> prompt_logprobs{}; ///< chats: of the first choice
};

/// The optional `metrics` object (X-Lamella-Metrics: 1). Times in milliseconds.
struct response_metrics {
  double queue_time_ms = 0;
  double time_to_first_token_ms = 0;
  double generation_time_ms = 0;
  double mean_itl_ms = 0;
  double tokens_per_second = 0;
  uint32_t recoveries = 0;      ///< number of recoveries of its choices
  double recovery_pause_ms = 0; ///< the longest of these pauses
};

/// Parts that several APIs write alike: the member `metrics`, and an array with an object for each
/// token: `token`, `logprob`, `bytes`, `top_logprobs`.
void write_metrics(json_writer& w, const response_metrics& m);
void write_logprobs(json_writer& w, const std::vector<token_logprobs>& entries);

std::string chat_body(const response_head& head, std::span<const response_choice> choices,
                      const usage_counts& usage, const response_metrics* metrics = nullptr);
std::string completion_body(const response_head& head, std::span<const response_choice> choices,
                            const usage_counts& usage, const response_metrics* metrics = nullptr);

/// The chunks of one streamed answer, as JSON texts without SSE framing. Keeps the legacy
/// text_offset of each choice; otherwise without state.
class stream_chunks {
public:
  enum class style : uint8_t { chat, completion };
  /// `include_usage` puts "usage":null into each chunk; `continuous` the running numbers.
  stream_chunks(style, response_head head, bool include_usage, bool continuous);

  /// First chunk of a choice; chat only (empty for completions, which have none).
  std::string role(uint32_t index, const usage_counts& running = {}) const;
  /// A piece of text, with the entries of its tokens when logprobs were asked for.
  std::string text(uint32_t index, std::string_view piece,
                   const std::vector<token_logprobs>* logprobs = nullptr,
                   const usage_counts& running = {});
  /// A piece of the reasoning before the text; chat only.
  std::string reasoning(uint32_t index, std::string_view piece,
                        const std::vector<token_logprobs>* logprobs = nullptr,
                        const usage_counts& running = {}) const;
  /// Call number `call` of a choice begins; chat only.
  std::string call(uint32_t index, uint32_t call, std::string_view id, std::string_view name,
                   const usage_counts& running = {}) const;
  /// More of its arguments.
  std::string arguments(uint32_t index, uint32_t call, std::string_view piece,
                        const std::vector<token_logprobs>* logprobs = nullptr,
                        const usage_counts& running = {}) const;
  /// Last chunk of a choice.
  std::string finish(uint32_t index, finish_reason reason, const stop_reason& stopped_by = {},
                     const usage_counts& running = {}) const;
  /// The extra chunk with empty choices; only with include_usage.
  std::string usage(const usage_counts& total) const;

private:
  style style_;
  response_head head_;
  bool include_usage_;
  bool continuous_;
  std::vector<uint64_t> offsets_; ///< code points sent, by choice
};

struct model_entry {
  std::string id;
  std::string root;
  int64_t created = 0;
  uint64_t max_model_len = 0;
  std::vector<std::pair<std::string, std::string>> meta; ///< name and JSON text of each value
};

std::string models_body(std::span<const model_entry> models);
std::string model_body(const model_entry& entry);

/// `strings` are the raw bytes of each token when asked for.
std::string tokenize_body(std::span<const uint32_t> tokens, uint64_t max_model_len,
                          const std::vector<std::string>* strings = nullptr);
std::string detokenize_body(std::string_view text);

/// Tokenizer properties for clients that render and count prompts themselves.
struct tokenizer_facts {
  std::string_view bos, eos, chat_template; ///< texts; empty: there is none
  bool adds_bos = false;                    ///< a prompt begins with `bos`
  uint64_t max_model_len = 0;
};
std::string tokenizer_info_body(const tokenizer_facts& facts);
std::string version_body(std::string_view version, std::string_view commit,
                         std::string_view build_date);

} // namespace lamella::net
