#include "model/tokenizer/vocabulary_tokenizer.hpp"

#include "base/file_error.hpp"
#include "model/tokenizer/characters.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace lamella::model {

namespace {

/// Texts of tokens that are taken whole and end an answer, whatever the file says about them. Some
/// files call one user-defined (Phi-3's "</s>"): it is a control token all the same, or users could
/// end their turns by it.
constexpr std::array<std::string_view, 9> known_ends{
    "<|endoftext|>", "<|end_of_text|>", "<|im_end|>",    "<|eot_id|>", "<|eom_id|>",
    "<|end|>",       "<|eot|>",         "<end_of_turn>", "</s>"};

} // namespace

vocabulary_tokenizer::vocabulary_tokenizer(const tokenizer_source& source, bool adds_bos,
                                           const std::function<std::string(token_id)>& bytes_of)
    : bos_(source.bos), eos_(source.eos),
      adds_bos_(source.add_bos.value_or(adds_bos) && source.bos) {
  if (source.tokens.empty())
    throw file_error(source.file, {}, "tokenizer.ggml.tokens", "is missing or empty");
  entries_.reserve(source.tokens.size()); // keys of plain_ point into the entries
  plain_.reserve(source.tokens.size());
  for (token_id id = 0; id < source.tokens.size(); ++id) {
    const token_kind kind = id < source.kinds.size() ? source.kinds[id] : token_kind::normal;
    const bool marker = kind == token_kind::control || kind == token_kind::unknown
                        || kind == token_kind::user_defined;
    const bool control = marker
                         && (kind != token_kind::user_defined
                             || std::ranges::count(known_ends, source.tokens[id]) > 0);
    entries_.push_back({bytes_of(id), marker, control, false, false});
    const auto& bytes = entries_.back().bytes;
    longest_ = std::max<uint64_t>(longest_, bytes.size());
    if (marker) {
      markers_.add(bytes, id, control);
    } else if (kind == token_kind::normal && !bytes.empty()) {
      plain_.emplace(bytes, id);
    }
  }
  for (const token_id id : source.take_space)
    if (id < entries_.size() && entries_[id].marker) entries_[id].takes_space = takes_space_ = true;
  const auto end = [this](token_id id) {
    if (id < entries_.size()) entries_[id].ends = true;
  };
  if (source.eos) end(*source.eos);
  for (const token_id id : source.more_ends) end(id);
  for (const std::string_view text : known_ends)
    if (const auto id = markers_.control(text)) end(*id);
}

uint64_t vocabulary_tokenizer::kept_bytes(std::string_view text) const {
  std::array<uint8_t, 256> kept{};
  for (unsigned byte = 0; byte < 256; ++byte) // where a marker may take white space: what is none
    kept[byte] = has_byte(static_cast<unsigned char>(byte))
                 && (!takes_space_ || (byte > 0x20 && byte < 0x7F));
  uint64_t bytes = 0;
  for (const char c : text) bytes += kept[static_cast<unsigned char>(c)];
  return bytes;
}

std::vector<token_id> vocabulary_tokenizer::encode(std::span<const text_segment> segments) const {
  std::string text;
  std::vector<std::pair<size_t, size_t>> trusted; // spans of trusted bytes, neighbours joined
  for (const text_segment& segment : segments) {
    const size_t begin = text.size();
    text += segment.text;
    if (!segment.trusted || segment.text.empty()) continue;
    if (!trusted.empty() && trusted.back().second == begin)
      trusted.back().second = text.size();
    else
      trusted.emplace_back(begin, text.size());
  }
  std::vector<token_id> out;
  const auto encode_between = [&](size_t begin, size_t end) {
    if (begin != end) encode_plain(std::string_view(text).substr(begin, end - begin), out);
  };
  size_t plain_begin = 0;
  auto span = trusted.begin();
  for (size_t at = 0; at < text.size();) {
    while (span != trusted.end() && span->second <= at) ++span;
    const size_t trusted_end = span != trusted.end() && span->first <= at ? span->second : 0;
    const auto found = markers_.longest(text, at, trusted_end);
    if (found.bytes == 0) {
      ++at;
      continue;
    }
    encode_between(plain_begin, at);
    out.push_back(found.token);
    at += found.bytes;
    if (entries_[found.token].takes_space) at = run_end(text, at, character_kind::space);
    plain_begin = at;
  }
  encode_between(plain_begin, text.size());
  return out;
}

} // namespace lamella::model
