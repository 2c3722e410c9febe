/// Request bodies of the API as checked values.
#pragma once

#include "base/json.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "net/api/output_format.hpp"
#include "net/api/tool_use.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lamella::net {

class http_headers;

/// Configurable limits of a body. Fixed ranges are in the parser.
struct api_limits {
  json_limits json;
  uint32_t messages = 2'048;  ///< per chat
  uint32_t prompts = 128;     ///< per legacy call; times n (or best_of) at most choices_max
  uint32_t max_n = 128;       ///< at most 128
  uint32_t best_of = 20;      ///< legacy calls
  uint32_t top_logprobs = 20; ///< alternatives to a token; at most 20
  /// Log probabilities of prompts: tokens x (1 + alternatives) x choices; 0: none are given.
  uint32_t prompt_logprobs = 262'144;
  uint32_t logit_bias = 300; ///< entries
  uint32_t stop_strings = 16;
  uint32_t stop_string_bytes = 256;      ///< of each
  std::optional<uint32_t> prompt_tokens; ///< of the longest prompt; none: the context length
  uint32_t tokens_per_request = 65'536;  ///< n, or best_of, x prompts x max_tokens
  uint32_t default_max_tokens = 4'096;   ///< chat, where the context has room
  uint32_t vocabulary = 0;               ///< token ids must be below; 0: not checked here
  bool strict = false;                   ///< unknown fields are 400 instead of ignored and counted
  /// Members of messages that the chat template reads, in addition to the standard ones.
  std::function<bool(std::string_view)> template_reads;
};

/// Sampling parameters of a token.
struct sampling_params {
  double temperature = 1;        ///< 0..2; 0 is greedy, and so is all below 1e-5
  double top_p = 1;              ///< 0..1; 0 keeps only the top token
  uint32_t top_k = 0;            ///< 0: off
  double min_p = 0;              ///< 0..1
  double presence_penalty = 0;   ///< -2..2, over generated tokens
  double frequency_penalty = 0;  ///< -2..2, over generated tokens
  double repetition_penalty = 1; ///< 0.01..100, over prompt and output
  std::optional<int64_t> seed;
  std::vector<std::pair<uint32_t, float>> logit_bias; ///< by ascending token id
};

/// Parameters common to the two generating routes.
struct generation_params {
  sampling_params sampling;
  uint32_t n = 1;
  uint32_t best_of = 0;               ///< sequences of a prompt, of which the best n are told; 0: n
  std::optional<uint32_t> max_tokens; ///< none: see resolve_max_tokens()
  std::string_view max_tokens_field = "max_tokens"; ///< the field in the body, for errors
  uint32_t min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<uint32_t> stop_token_ids;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
  std::optional<output_format> format;     ///< response format
  std::optional<uint32_t> logprobs;        ///< present: wanted, with that many alternatives, 0..20
  std::optional<uint32_t> prompt_logprobs; ///< the same of the prompt's tokens; never in a stream
  bool stream = false;
  bool include_usage = false;     ///< stream_options
  bool continuous_usage = false;  ///< stream_options
  bool echo_service_tier = false; ///< answer with service_tier "default"
  std::string request_id;         ///< empty: none in the body
  std::string cache_salt;         ///< requests share KV only with the same salt
  bool include_reasoning = true;  ///< answers tell the reasoning before them

  /// Sequences that are generated for a prompt.
  uint32_t drawn() const { return best_of > n ? best_of : n; }
};

struct chat_message {
  std::string role;                    ///< system, developer, user, assistant or tool
  std::string content;                 ///< text parts joined by line feeds
  std::string name;                    ///< empty: none
  std::vector<tool_call> tool_calls{}; ///< assistant; then `content` may be empty
  std::string tool_call_id{};          ///< tool: whose result it is
  std::vector<std::string> parts{};    ///< the texts of `content`, where it was an array of parts
  std::string reasoning{};             ///< assistant: reasoning before `content`
  json_value::object more{};           ///< members for the chat template only
  bool prefix = false;                 ///< the last one: the answer goes on with it
};

/// Where the prompt of a conversation ends.
enum class prompt_end : uint8_t {
  asks,     ///< with what has the model answer
  as_it_is, ///< behind the last message
  continues ///< within the last message, which the answer goes on with
};

/// May an answer go on with it?
inline bool may_go_on(const chat_message& m) {
  return m.role == "assistant" && !m.content.empty() && m.tool_calls.empty();
}

struct chat_request {
  std::string model;
  std::vector<chat_message> messages; ///< at least one
  prompt_end end = prompt_end::asks;
  tool_use tools;
  generation_params params;
  json_value::object template_kwargs; ///< data for the chat template
  std::vector<std::string> unknown;   ///< fields ignored
};

/// A prompt as text or as token ids.
using prompt_input = std::variant<std::string, std::vector<uint32_t>>;

struct completion_request {
  std::string model;
  std::vector<prompt_input> prompts; ///< at least one; choice index = prompt * n + k
  /// max_tokens is always present (default 16, 0 allowed); best_of > n never with stream.
  generation_params params;
  bool echo = false;
  /// Whether texts of control tokens in a prompt are parsed as these tokens: `parse_special`.
  model::special markers = model::special::allowed;
  std::vector<std::string> unknown;
};

struct tokenize_request {
  std::string model;                 ///< empty: the only one
  std::optional<std::string> prompt; ///< this or messages
  std::vector<chat_message> messages;
  tool_use tools;
  bool add_special_tokens = true;
  model::special markers = model::special::allowed; ///< in `prompt`, as above
  prompt_end end = prompt_end::asks;
  bool return_token_strs = false;
  json_value::object template_kwargs;
  std::vector<std::string> unknown;
};

struct detokenize_request {
  std::string model; ///< empty: the only one
  std::vector<uint32_t> tokens;
  std::vector<std::string> unknown;
};

/// A fault for a worker, requested on the admin listener.
struct chaos_request {
  std::string action;
  std::string target;         ///< a seat, a role, or empty: any worker
  uint32_t duration_ms = 500; ///< of temporary faults; at most ten minutes
};

/// Another size for a pool, requested on the admin listener.
struct scale_request {
  std::string pool;
  uint32_t members = 0;
  std::string partition{};            ///< of a cell: "heads" or "requests"; empty: as it is
  std::optional<uint64_t> kv_bytes{}; ///< of each member; nothing: as it is
};

} // namespace lamella::net
