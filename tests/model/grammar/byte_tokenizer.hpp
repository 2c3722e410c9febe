/// A tokenizer of chosen texts, for tests of masks.
#pragma once

#include "model/tokenizer/make_tokenizer.hpp"
#include "tests/tiny_model.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace lamella::tests {

/// Three control tokens, of which 1 begins and 2 ends a text; then each byte; then these texts, in
/// their order.
inline std::shared_ptr<const model::tokenizer> byte_tokenizer(std::span<const std::string> texts) {
  constexpr size_t controls = 3, bytes = 256;
  const auto tiny = make_tiny_vocabulary();
  model::tokenizer_source source;
  source.kind = "gpt2";
  source.pre = "smollm";
  source.tokens.assign(tiny.tokens.begin(), tiny.tokens.begin() + controls + bytes);
  for (const auto& text : texts) {
    auto& spelt = source.tokens.emplace_back();
    for (const char byte : text) spelt += byte_character(static_cast<unsigned char>(byte));
  }
  source.kinds.assign(source.tokens.size(), model::token_kind::normal);
  for (size_t i = 0; i < controls; ++i) source.kinds[i] = model::token_kind::control;
  source.bos = 1;
  source.eos = 2;
  return model::make_tokenizer(source);
}

} // namespace lamella::tests
