#include "model/tokenizer/tokenizer.hpp"

namespace lamella::model {

std::vector<token_id> tokenizer::encode(std::string_view text, special policy) const {
  const text_segment whole{std::string(text), policy == special::allowed};
  return encode(std::span(&whole, 1));
}

uint64_t tokenizer::fewest_tokens(std::span<const text_segment> segments) const {
  uint64_t bytes = 0;
  for (const auto& x : segments) bytes += kept_bytes(x.text);
  return (bytes + longest_token() - 1) / longest_token();
}

uint64_t tokenizer::fewest_tokens(std::string_view text) const {
  return (kept_bytes(text) + longest_token() - 1) / longest_token();
}

std::string tokenizer::decode(std::span<const token_id> tokens) const {
  std::string text;
  std::optional<token_id> before;
  for (const token_id token : tokens) {
    text += text_after(before, token);
    before = token;
  }
  return text;
}

std::string_view tokenizer::text_after(std::optional<token_id> before, token_id token) const {
  auto text = token_bytes(token);
  if (text.starts_with(' ') && puts_space_after(before)) text.remove_prefix(1);
  return text;
}

} // namespace lamella::model
