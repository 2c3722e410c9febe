/// The parts of request bodies that several routes share; used by the parsers of
/// net/api/api_request.
#pragma once

#include "base/json_reader.hpp"
#include "net/api/api_values.hpp"
#include "net/api/unsupported_fields.hpp"
#include "net/http/api_error.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// Runs `read` on the top object of a body, and turns reader errors into API errors.
template <class Read>
auto parse_body(std::string_view body, const api_limits& limits, Read&& read) {
  try {
    const json_value value = parse_json(body, limits.json);
    json_object_reader reader(value);
    return read(reader);
  } catch (const json_syntax_error& error) {
    throw invalid_json(error.what());
  } catch (const json_field_error& error) {
    throw invalid_value(error.path, error.what());
  }
}

/// Handles unread fields, at any depth, but for those that are null: internal names are 400,
/// unknown ones are 400 when strict, else returned, each once.
std::vector<std::string> take_unknown(json_object_reader& body, const api_limits& limits);

/// sampling, lengths, n, stop, streaming: all but logprobs, which differ by route.
generation_params read_generation(json_object_reader& body, const api_limits& limits,
                                  uint32_t max_tokens_min);

/// `prompt_logprobs` of completions and chats; throws api_error where the answer is a stream.
std::optional<uint32_t> read_prompt_logprobs(json_object_reader& body, const api_limits& limits,
                                             bool stream);

/// Throws api_error where the log probabilities of so many prompt tokens, each with `alternatives`,
/// in `choices` choices are too many. `field`: that asks for them.
void check_prompt_logprobs(uint64_t tokens, uint32_t alternatives, uint32_t choices,
                           const api_limits& limits, const std::string& field);

/// Checks across several fields.
void check_combinations(const generation_params& params);

/// The most sequences of one request: prompts x n, or x best_of where that is more.
inline constexpr uint64_t choices_max = 1'024;

/// Throws api_error where all choices of all prompts may have more tokens than a request may. Comes
/// after the check against the context, by which clients know how to go on.
void check_budget(const generation_params& params, size_t prompts, const api_limits& limits);

/// Fields that would end an output elsewhere than its format does, but for stop texts, which are
/// looked for in what the format lets through: throws api_error.
void refuse_other_ends(const generation_params& params);

/// A tool call ends the answer: throws api_error where the parameters forbid that.
void refuse_endless(const generation_params& params);

/// The `messages` of a chat.
std::vector<chat_message> read_messages(json_object_reader& body, const api_limits& limits);

/// `chat_template_kwargs`: identifier keys, 8 KiB, scalars or shallow values. Keys that are
/// fields of the request or tokens of the model are refused; those of functions hide these.
json_value::object read_template_kwargs(json_object_reader& body);

/// An array of token ids below limits.vocabulary.
std::vector<uint32_t> read_token_ids(const json_value& value, const std::string& path,
                                     const api_limits& limits, size_t min, size_t max);

} // namespace lamella::net
