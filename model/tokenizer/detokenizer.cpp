#include "model/tokenizer/detokenizer.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <utility>

namespace lamella::model {

std::string detokenizer::push(token_id token) {
  const auto before = std::exchange(before_, token);
  if (policy_ == specials::skipped && tokens_->is_special(token)) return {};
  held_ += tokens_->text_after(before, token);
  std::string text;
  size_t at = 0;
  while (at < held_.size()) {
    const utf8_unit unit = decode_utf8(held_, at);
    if (unit.kind == utf8_unit::state::unfinished) break;
    if (unit.kind == utf8_unit::state::valid)
      text.append(held_, at, unit.bytes);
    else
      append_utf8(text, 0xFFFD);
    at += unit.bytes;
  }
  held_.erase(0, at);
  return text;
}

std::string detokenizer::finish() {
  std::string text;
  if (!held_.empty()) append_utf8(text, 0xFFFD);
  held_.clear();
  before_.reset();
  return text;
}

std::string unfinished_end(const tokenizer& tokens, std::span<const token_id> text) {
  constexpr size_t unfinished_max = 3;
  std::string end;
  for (auto i = text.size(); i-- > 0 && end.size() < unfinished_max;) {
    const auto before = i > 0 ? std::optional{text[i - 1]} : std::nullopt;
    end.insert(0, tokens.text_after(before, text[i]));
  }
  for (auto at = end.size() - std::min(end.size(), unfinished_max); at < end.size(); ++at)
    if (decode_utf8(end, at).kind == utf8_unit::state::unfinished) return end.substr(at);
  return {};
}

} // namespace lamella::model
