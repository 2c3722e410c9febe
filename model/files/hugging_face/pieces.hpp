/// Pieces of SentencePiece models in tokenizer.json.
#pragma once

#include "model/tokenizer/tokenizer_source.hpp"

#include <span>
#include <string>
#include <unordered_map>
#include <utility>

namespace lamella::model::hugging_face {

/// Tokens by their text.
using vocabulary_map = std::unordered_map<std::string, token_id>;

/// Fills in the scores of a source of pieces. A tokenizer.json has the merges that make each piece
/// instead, all of them, the pieces in the order of their scores; so the order gives the scores up
/// to what they are used for. Pieces of several characters that no merge
/// makes become unused. Throws json_field_error for merges in another order, or where one is
/// missing.
void score_pieces(std::span<const std::pair<token_id, token_id>> merges,
                  const vocabulary_map& tokens, tokenizer_source& out);

} // namespace lamella::model::hugging_face
