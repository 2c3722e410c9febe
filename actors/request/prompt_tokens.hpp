/// From prompts to tokens and back, as a service does it.
#pragma once

#include "actors/request/service.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::actors {

inline constexpr uint64_t any_length = ~uint64_t{0};

/// The tokens of a conversation as the chat template lays it out, up to `end`. A text that
/// certainly has more than `most` tokens is rejected by its length, before tokenisation. With a
/// bound it is to be answered, and rejected where the template leaves out what users say; /tokenize
/// shows what it makes, whatever that is. Throws net::api_error.
std::vector<model::token_id> chat_tokens(const service& s,
                                         const std::vector<net::chat_message>& messages,
                                         const net::tool_use& tools, const json_value::object& more,
                                         net::prompt_end end, uint64_t most = any_length);

/// The tokens of a plain prompt, or the ids checked against the vocabulary. `markers` says whether
/// the texts of control tokens are these tokens; `most` as above. Throws net::api_error.
std::vector<model::token_id> prompt_tokens(const service& s, const net::prompt_input& prompt,
                                           model::special markers, bool add_special_tokens = true,
                                           uint64_t most = any_length);

/// Counts fields of a body that mean nothing here. Gives them as a header names them.
std::string note_unknown(const service& s, const std::vector<std::string>& names);

/// An answer that tells of tokens.
struct token_answer {
  std::string body;             ///< JSON
  std::string ignored_fields{}; ///< of the request's body, for a header; empty: none
};

/// The answers of /tokenize, /detokenize, /v1/messages/count_tokens and, whatever the body is,
/// /tokenizer_info. Throw net::api_error.
token_answer tokenize(const service& s, const std::string& body);
token_answer detokenize(const service& s, const std::string& body);
token_answer count_tokens(const service& s, const std::string& body);
token_answer tokenizer_info(const service& s, const std::string& body);

} // namespace lamella::actors
