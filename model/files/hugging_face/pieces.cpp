#include "model/files/hugging_face/pieces.hpp"

#include "base/json_reader.hpp"
#include "base/printable.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace lamella::model::hugging_face {

namespace {

/// Longer pieces are refused, or counting how they can be cut might take minutes.
constexpr size_t piece_bytes_max = 256;

/// Where a piece can be cut, and into how many pairs of pieces.
struct cuts {
  size_t places = 0, pairs = 0;
};

cuts cuts_of(const std::string& piece, const vocabulary_map& tokens) {
  cuts found;
  for (size_t at = 1; at < piece.size(); ++at) {
    if ((static_cast<unsigned char>(piece[at]) & 0xC0) == 0x80) continue; // within a character
    ++found.places;
    if (tokens.contains(piece.substr(0, at)) && tokens.contains(piece.substr(at))) ++found.pairs;
  }
  return found;
}

/// Some spaces and nothing else. Models have runs of spaces that were not learned, of one score,
/// and their merges are mixed: from left to right they come out the same in any order.
bool is_spaces(const std::string& piece) {
  constexpr std::string_view mark = "\u2581";
  for (size_t at = 0; at < piece.size(); at += mark.size())
    if (piece.compare(at, mark.size(), mark) != 0) return false;
  return true;
}

} // namespace

void score_pieces(std::span<const std::pair<token_id, token_id>> merges,
                  const vocabulary_map& tokens, tokenizer_source& out) {
  std::vector<token_id> merged;
  std::vector<size_t> count(out.tokens.size(), 0), last(out.tokens.size(), 0);
  for (const auto& [left, right] : merges) {
    merged.push_back(tokens.find(out.tokens[left] + out.tokens[right])->second);
    last[merged.back()] = merged.size();
    ++count[merged.back()];
  }
  out.scores.assign(out.tokens.size(), 0);
  float score = 0;
  size_t end = 0; // of the merges of pieces of this score
  for (size_t i = 0; i < merged.size(); ++i) {
    const auto& piece = out.tokens[merged[i]];
    if (i == end) {
      score -= 1; // exact: there are fewer than 2^24
    } else if (merged[i] != merged[i - 1]
               && !(is_spaces(piece) && is_spaces(out.tokens[merged[i - 1]]))) {
      const auto path = json_index("model.merges", i);
      throw json_field_error(path,
                             path + " makes '" + printable(piece) + "' between those of '"
                                 + printable(out.tokens[merged[i - 1]])
                                 + "'; merges of pieces must be in the order of their scores");
    }
    out.scores[merged[i]] = score;
    end = std::max(end, last[merged[i]]);
  }
  for (token_id id = 0; id < out.tokens.size(); ++id) {
    if (out.kinds[id] != token_kind::normal) continue;
    const auto& piece = out.tokens[id];
    if (piece.size() > piece_bytes_max)
      throw json_field_error("model.vocab", "model.vocab has a piece of "
                                                + std::to_string(piece.size()) + " bytes; at most "
                                                + std::to_string(piece_bytes_max) + " are read");
    const auto [places, pairs] = cuts_of(piece, tokens);
    if (count[id] < pairs)
      throw json_field_error("model.merges",
                             "model.merges has " + std::to_string(count[id]) + " merges for '"
                                 + printable(piece) + "', which " + std::to_string(pairs)
                                 + " pairs of tokens make: it is not made from a SentencePiece "
                                   "model");
    // No merge makes it, whatever it is called.
    if (places != 0 && pairs == 0) out.kinds[id] = token_kind::unused;
  }
}

} // namespace lamella::model::hugging_face
