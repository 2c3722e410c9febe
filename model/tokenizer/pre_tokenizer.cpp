#include "model/tokenizer/pre_tokenizer.hpp"

#include "model/tokenizer/cased_words.hpp"
#include "model/tokenizer/characters.hpp"

namespace lamella::model {

namespace {

/// GPT-2: contractions; letters, numbers or other characters with at most one space before them;
/// white space.
size_t gpt2_word_end(std::string_view text, size_t at) {
  if (const size_t bytes = contraction(text, at, false)) return at + bytes;
  const size_t begin = text[at] == ' ' ? at + 1 : at;
  const character first = character_at(text, begin);
  if (first.bytes != 0 && first.is != character_kind::space) return run_end(text, begin, first.is);
  return space_end(text, at);
}

void split_gpt2(std::string_view text, std::vector<size_t>& ends) {
  for (size_t at = 0; at < text.size();) {
    at = gpt2_word_end(text, at);
    ends.push_back(at);
  }
}

/// SmolLM2: every number character is a word; what is between them is cut as by GPT-2.
void split_smollm(std::string_view text, std::vector<size_t>& ends) {
  const auto cut = [&](size_t begin, size_t end) {
    const std::string_view part = text.substr(begin, end - begin);
    for (size_t at = 0; at < part.size();) {
      at = gpt2_word_end(part, at);
      ends.push_back(begin + at);
    }
  };
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const character c = character_at(text, at);
    if (c.is == character_kind::number) {
      cut(begin, at);
      begin = at + c.bytes;
      ends.push_back(begin);
    }
    at += c.bytes;
  }
  cut(begin, text.size());
}

/// LLaMA-3: contractions in any case; letters with at most one character before them that is no
/// letter, number or newline; one to three numbers (Qwen2: one); other characters with at most one
/// space before and any newlines after them; white space through its last newline; white space.
size_t llama3_word_end(std::string_view text, size_t at, int numbers) {
  if (const size_t bytes = contraction(text, at, true)) return at + bytes;
  const character first = character_at(text, at);
  const character second = character_at(text, at + first.bytes);
  if (first.is == character_kind::letter) return run_end(text, at, character_kind::letter);
  if (first.is == character_kind::number) return numbers_end(text, at, numbers);
  if (!is_newline(first) && second.bytes != 0 && second.is == character_kind::letter)
    return run_end(text, at + first.bytes, character_kind::letter);
  const bool spaced =
      first.code_point == ' ' && second.bytes != 0 && second.is == character_kind::other;
  if (spaced || first.is == character_kind::other) {
    size_t end = run_end(text, spaced ? at + 1 : at, character_kind::other);
    while (end < text.size() && (text[end] == '\n' || text[end] == '\r')) ++end;
    return end;
  }
  const size_t end = last_newline_end(text, at);
  return end != at ? end : space_end(text, at);
}

void split_llama3(std::string_view text, std::vector<size_t>& ends) {
  for (size_t at = 0; at < text.size();) {
    at = llama3_word_end(text, at, 3);
    ends.push_back(at);
  }
}

/// Qwen's own tokeniser composes characters first (NFC), which is left out here: text comes back as
/// it was.
void split_qwen2(std::string_view text, std::vector<size_t>& ends) {
  for (size_t at = 0; at < text.size();) {
    at = llama3_word_end(text, at, 1);
    ends.push_back(at);
  }
}

/// Further families are further lines. Many have the rules of one that was before them.
constexpr pre_tokenizer known[]{
    {"gpt-2", split_gpt2, false, false},
    {"default", split_gpt2, false, false},
    {"mpt", split_gpt2, false, false},
    {"olmo", split_gpt2, false, false},
    {"smollm", split_smollm, false, false},
    {"starcoder", split_smollm, false, false},
    {"refact", split_smollm, false, false}, // Granite
    {"command-r", split_smollm, false, false},
    {"llama-bpe", split_llama3, true, true},
    {"llama3", split_llama3, true, true},
    {"llama-v3", split_llama3, true, true},
    {"falcon3", split_llama3, true, true},
    {"pixtral", split_llama3, true, true},
    {"smaug-bpe", split_llama3, false, false}, // SmolLM3
    {"dbrx", split_llama3, false, false},      // OLMo2, Phi-4
    {"qwen2", split_qwen2, false, false},      // Qwen3, too
    {"deepseek-r1-qwen", split_qwen2, false, false},
    {"megrez", split_qwen2, false, false},
    {"tekken", split_tekken, true, true},   // Mistral since Nemo
    {"gpt-4o", split_gpt_4o, false, false}, // Phi-4-mini
};

} // namespace

const pre_tokenizer* find_pre_tokenizer(std::string_view name) {
  for (const pre_tokenizer& each : known)
    if (each.name == name || (name.empty() && each.name == "default")) return &each;
  return nullptr;
}

std::string pre_tokenizer_names() {
  std::string names;
  for (const pre_tokenizer& each : known)
    names += (names.empty() ? "" : " ") + std::string(each.name);
  return names;
}

} // namespace lamella::model
