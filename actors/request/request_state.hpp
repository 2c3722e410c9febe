/// The state of a REQUEST, which its parts share.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/values.hpp"
#include "actors/request/choice.hpp"
#include "actors/request/logprobs.hpp"
#include "actors/request/request_note.hpp"
#include "actors/request/service.hpp"
#include "base/byte_budget.hpp"
#include "net/api/answer_writer.hpp"
#include "net/api/api_route.hpp"
#include "net/http/api_error.hpp"
#include "net/http/http_exchange.hpp"
#include "net/tracing/trace_context.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::actors {

/// A validated request body with the tokens of its prompts.
struct request_reading {
  std::optional<net::api_error> refusal; ///< if set, the other fields are unused
  net::generation_params params;
  net::tool_use tools;
  model::answer_reasoning reasoning;                    ///< chats of models that reason
  std::string ignored_keywords;                         ///< of schemas, for a header
  std::string ignored_fields;                           ///< of the body, for a header
  std::shared_ptr<model::output_constraint> constraint; ///< of params.format, tools and reasoning
  std::vector<std::vector<token_id>> prompts;
  std::vector<std::string> prompt_texts; ///< for echo
  /// For echo, too: the first bytes of an unfinished UTF-8 character at the end of a prompt of ids;
  /// not in `prompt_texts`.
  std::vector<std::string> prompt_ends;
  std::string model;
  uint32_t choices = 1; ///< per prompt
  uint32_t max_tokens = 0;
  bool echo = false;
  uint32_t scored = 0;        ///< log probabilities of prompts: 0: none; else 1 + alternatives
  byte_budget::share share;   ///< of the memory for bodies: what those and the writer take
  std::string_view id_prefix; ///< of the answer
  /// Makes the writer of the answer.
  std::function<std::shared_ptr<net::answer_writer>(const net::response_head&)> writer_of;
};

/// One sequence and its progress.
struct request_sequence {
  enum class phase : uint8_t { waiting, prefilling, decoding, done };
  phase where = phase::waiting;
  std::optional<choice> text;
  uint64_t seed = 0;
  stream_id batch{};              ///< joined last
  bool has_kv = false;            ///< of all tokens but the newest, at its shards
  bool yields = false;            ///< it was told to give up its seat
  bool yielded = false;           ///< waits for its client, without a seat
  const char* recovery = nullptr; ///< recovery method after a loss, until its next token
  std::string lost_role{};        ///< whose loss that was
  /// When its pipeline was lost; until its next token.
  std::optional<std::chrono::steady_clock::time_point> paused_since;
  /// The last token from a batch that had ended, for the position after its tokens; to be
  /// recomputed.
  std::optional<token_id> heard;
  uint32_t cached = 0;             ///< prompt tokens with KV from the prefix cache
  bool said_first = false;         ///< the role chunk was sent
  std::optional<prompt_echo> echo; ///< of a scored prompt in a stream, once it has begun
  bool said_last = false;          ///< the finish chunk was sent
  std::chrono::steady_clock::time_point last_token;
};

/// How a stream ends once `unsent` is sent.
enum class stream_end : uint8_t {
  open,  ///< it goes on
  whole, ///< the end mark
  failed ///< an error
};

/// A pause of a sequence by a loss, between two of its tokens.
struct request_pause {
  std::chrono::steady_clock::time_point from, to;
  const char* method = nullptr; ///< by which what was lost came back
};

struct request_state {
  static constexpr size_t pauses_kept = 32; ///< of its first

  service_ptr server;
  exchange_ptr exchange;
  request_id id{};
  net::api_route route{}; ///< that it came by
  request_note_ptr note;  ///< null: nobody reads it
  net::generation_params params;
  net::tool_use tools;
  std::string ignored_keywords;                         ///< of schemas, for a header
  std::string ignored_fields;                           ///< of the body, for a header
  std::shared_ptr<model::output_constraint> constraint; ///< of params.format, tools and reasoning
  uint32_t choices = 1; ///< per prompt; more than params.n where the best are picked
  bool echo = false;
  uint64_t cache_scope = 0; ///< KV is shared only within a scope
  std::vector<std::vector<token_id>> prompts;
  std::vector<std::string> prompt_texts; ///< for echo
  std::vector<std::string> prompt_ends;  ///< for echo, too
  uint32_t scored = 0;                   ///< as in request_reading
  std::vector<prompt_scores_ptr> scores; ///< by prompt; null until they are computed
  byte_budget::share share; ///< of the memory for bodies: what those and the writer take
  uint32_t max_tokens = 0;
  std::vector<request_sequence> sequences; ///< prompt-major
  net::response_head head;
  std::array<uint64_t, 2> call_ids{};         ///< seeds of tool-call ids
  std::shared_ptr<net::answer_writer> writer; ///< null until the body is read
  bool streaming = false;                     ///< headers are out
  bool writing = false;                       ///< a piece is with the socket
  bool stalled = false;   ///< the client is too slow: the sequences yielded their seats
  std::string unsent;     ///< rendered events that the socket has not taken,
  size_t unsent_from = 0; ///< from here on
  stream_end ending = stream_end::open;
  bool answered = false;   ///< complete except for the data in `unsent`
  bool down = false;       ///< there is no pipeline
  uint32_t recoveries = 0; ///< number of recoveries of its sequences
  std::chrono::steady_clock::duration longest_pause{0}; ///< of these, between two tokens
  uint32_t open_questions = 0;          ///< to the scheduler and the prefill workers
  std::chrono::milliseconds deadline{}; ///< after `arrived`, as it was then
  std::chrono::steady_clock::time_point arrived, started, first_token, last_written;
  bool has_started = false, has_first_token = false;
  /// Between the tokens of a choice, of all choices together.
  std::chrono::steady_clock::duration gaps{0};
  uint64_t gap_count = 0;
  std::optional<std::chrono::steady_clock::time_point> admitted; ///< it has slots and a place
  std::optional<net::trace_context> trace;                       ///< nothing: it gets no spans
  std::vector<request_pause> pauses;                             ///< kept for its spans
  const char* name = "request";

  /// Whether the request is paused by a loss.
  bool paused() const {
    return std::any_of(sequences.begin(), sequences.end(),
                       [](const auto& s) { return s.paused_since && !s.text->over(); });
  }
  /// Whether the prompt of a sequence is still to be scored.
  bool unscored(size_t index) const { return scored > 0 && !scores[index / choices]; }
  /// Whether the prompts are said together with their log probabilities.
  bool echoes_scores() const { return echo && params.logprobs; }
  sequence_id sequence(size_t index) const {
    return scheduler::sequence_of(id, static_cast<uint32_t>(index));
  }
};

using request_ptr = request_actor::stateful_pointer<request_state>;

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::exchange_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::request_reading_ptr)
