// Token ids against an oracle that nobody here wrote (tokenizer_golden.py), on ten thousand texts
// per family of pre-tokenisers: code, many scripts, emoji, long white space, control characters.
#include "model/files/checkpoint.hpp"
#include "model/files/open_checkpoint.hpp"
#include "model/tokenizer/detokenizer.hpp"
#include "model/tokenizer/make_tokenizer.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "tests/folders.hpp"
#include "tests/golden/tokenizer_texts.hpp"
#include "tests/model_files.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <sstream>

using namespace lamella;
using model::token_id;

namespace {

uint64_t hash_ids(std::span<const token_id> ids, uint64_t state) {
  for (const token_id id : ids)
    for (int shift = 0; shift < 32; shift += 8)
      state = (state ^ (id >> shift & 0xFF)) * 0x100000001B3u;
  return state;
}

constexpr uint64_t hash_begin = 0xCBF29CE484222325u;
constexpr token_id separator = ~token_id{0};
constexpr uint64_t text_count = 10'240;

uint32_t folded(uint64_t state) { return static_cast<uint32_t>(state ^ state >> 32); }

/// Hashes of one text each, or of as many consecutive ones as there are fewer of them.
std::vector<uint32_t> read_hashes(const std::string& name) {
  std::ifstream in(std::string{lamella::tests::source_folder} + "/tests/golden/" + name + ".txt");
  std::string line;
  std::getline(in, line); // says what the hashes were made from
  std::vector<uint32_t> hashes;
  for (std::string word; in >> word;)
    hashes.push_back(static_cast<uint32_t>(std::stoul(word, nullptr, 16)));
  return hashes;
}

/// The text that comes back: without the bytes that the vocabulary has no token for, and with
/// spaces for the character that SentencePiece writes them as.
std::string representable(const model::tokenizer& tokens, const std::string& text, bool spaces) {
  std::string kept;
  for (size_t i = 0; i < text.size(); ++i) {
    if (spaces && text.compare(i, 3, "\u2581") == 0) {
      kept += ' ';
      i += 2;
    } else if (tokens.has_byte(static_cast<unsigned char>(text[i]))) {
      kept += text[i];
    }
  }
  return kept;
}

std::string stream(const model::tokenizer& tokens, std::span<const token_id> ids) {
  model::detokenizer out(tokens, model::detokenizer::specials::shown);
  std::string text;
  for (const token_id id : ids) text += out.push(id);
  return text + out.finish();
}

/// What comes back of a text, at once and as a stream, and that nothing else does.
void check_text(const model::tokenizer& tokens, const std::string& text, const std::string& kept,
                std::span<const token_id> plain, std::span<const token_id> control) {
  if (tokens.decode(plain) != kept || tokens.decode(control) != kept)
    FAIL_CHECK("decode(encode(text)) differs from the text");
  if (kept.size() == text.size() && stream(tokens, plain) != kept)
    FAIL_CHECK("the streamed text differs from the text");
  for (const token_id id : plain)
    if (tokens.is_special(id)) FAIL("a control token out of untrusted text");
}

/// `pre` is empty for SentencePiece.
void compare(const std::string& family, const std::string& pre, const std::filesystem::path& file) {
  const auto hashes = read_hashes("tokenizer_" + family);
  const auto group = text_count / hashes.size();
  REQUIRE(group * hashes.size() == text_count);
  const auto opened = model::open_checkpoint(file);
  const bool sentencepiece = pre.empty();
  if (sentencepiece ? opened->tokenizer().kind != "llama" : opened->tokenizer().pre != pre) {
    MESSAGE("skipped: " << file << " is of another family (" << opened->tokenizer().pre << ")");
    return;
  }
  const auto tokens = model::make_tokenizer(opened->tokenizer());
  const auto table = tests::read_fragments();
  bool all_bytes = true;
  for (unsigned byte = 0; byte < 256; ++byte)
    all_bytes = all_bytes && tokens->has_byte(static_cast<unsigned char>(byte));
  CHECK(all_bytes == (family != "smollm"));

  size_t different = 0;
  for (uint64_t first = 0; first < text_count; first += group) {
    uint64_t state = hash_begin;
    CAPTURE(first);
    for (uint64_t number = first; number < first + group; ++number) {
      CAPTURE(number);
      const std::string text = tests::make_text(number, table);
      const auto plain = tokens->encode(text, model::special::forbidden);
      const auto control = tokens->encode(text, model::special::allowed);
      state = hash_ids(plain, state);
      state = hash_ids(std::span(&separator, 1), state);
      state = hash_ids(control, state);
      check_text(*tokens, text, representable(*tokens, text, sentencepiece), plain, control);
    }
    if (folded(state) != hashes[first / group] && ++different <= 5)
      CHECK(folded(state) == hashes[first / group]);
  }
  CHECK(different == 0);
  MESSAGE(text_count << " texts of family " << family << " compared with the oracle");
}

/// The words of a pre-tokeniser, where no vocabulary of its family is at hand.
void compare_words(const std::string& pre) {
  const auto hashes = read_hashes("words_" + pre);
  const auto* rules = model::find_pre_tokenizer(pre);
  REQUIRE(rules != nullptr);
  const auto table = tests::read_fragments();
  const auto group = 2 * text_count / hashes.size();
  size_t different = 0;
  for (uint64_t first = 0; first < 2 * text_count; first += group) {
    uint64_t state = hash_begin;
    for (uint64_t number = first; number < first + group; ++number) {
      const auto text = number < text_count ? tests::make_text(number, table)
                                            : tests::make_cased_text(number - text_count);
      std::vector<size_t> ends;
      rules->split(text, ends);
      std::vector<token_id> numbers(ends.begin(), ends.end());
      numbers.push_back(separator);
      state = hash_ids(numbers, state);
    }
    CAPTURE(first);
    if (folded(state) != hashes.at(first / group) && ++different <= 5)
      CHECK(folded(state) == hashes[first / group]);
  }
  CHECK(different == 0);
}

/// llama.cpp ships texts beside its vocabularies, with the ids that transformers gives for them.
void compare_shipped(const std::filesystem::path& file) {
  const auto opened = model::open_checkpoint(file);
  const auto tokens = model::make_tokenizer(opened->tokenizer());
  std::ifstream in(file.string() + ".inp", std::ios::binary), ids(file.string() + ".out");
  std::stringstream all;
  all << in.rdbuf();
  const std::string texts = all.str(), border = "\n__ggml_vocab_test__\n";
  size_t compared = 0;
  size_t begin = 0;
  for (std::string line; std::getline(ids, line); ++compared) {
    REQUIRE(begin <= texts.size());
    const size_t end = std::min(texts.find(border, begin), texts.size());
    const std::string text = texts.substr(begin, end - begin);
    begin = end + border.size();
    std::istringstream words(line);
    std::vector<token_id> expected;
    for (token_id id = 0; words >> id;) expected.push_back(id);
    CAPTURE(text);
    CHECK(tokens->encode(text, model::special::forbidden) == expected);
  }
  CHECK(compared >= 40);
}

/// Runs `check` on a fetched vocabulary, or says that it is missing.
template <class F> void with_vocabulary(const std::string& name, F check) {
  if (const auto file = tests::vocabulary_file(name)) return check(*file);
  MESSAGE("skipped: no " << name << "; tests/golden/fetch_vocabularies fetches it");
}

} // namespace

TEST_CASE("the default model's tokens equal the oracle's on ten thousand texts") {
  const auto file = tests::default_model();
  if (!file) {
    MESSAGE("skipped: no default model (set LAMELLA_TEST_MODEL or run deploy/quickstart)");
    return;
  }
  compare("smollm", "smollm", *file);
}

TEST_CASE("GPT-2's tokens equal the oracle's on ten thousand texts") {
  with_vocabulary("ggml-vocab-gpt-2.gguf",
                  [](const auto& file) { compare("gpt2", "gpt-2", file); });
}

TEST_CASE("LLaMA-3's tokens equal the oracle's on ten thousand texts") {
  with_vocabulary("ggml-vocab-llama-bpe.gguf",
                  [](const auto& file) { compare("llama3", "llama-bpe", file); });
}

TEST_CASE("Qwen2's tokens equal the oracle's on ten thousand texts") {
  with_vocabulary("ggml-vocab-qwen2.gguf",
                  [](const auto& file) { compare("qwen2", "qwen2", file); });
}

TEST_CASE("LLaMA-2's tokens equal SentencePiece's on ten thousand texts") {
  with_vocabulary("ggml-vocab-llama-spm.gguf",
                  [](const auto& file) { compare("llama2", "", file); });
}

TEST_CASE("tokens of a Chinese vocabulary equal SentencePiece's on ten thousand texts") {
  with_vocabulary("ggml-vocab-baichuan.gguf",
                  [](const auto& file) { compare("baichuan", "", file); });
}

TEST_CASE("words that end where case changes equal the oracle's on twenty thousand texts") {
  compare_words("gpt-4o");
  compare_words("tekken");
}

TEST_CASE("tokens equal those that transformers gave for the texts beside the vocabularies") {
  for (const char* name :
       {"gpt-2", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "refact", "starcoder"})
    with_vocabulary("ggml-vocab-" + std::string{name} + ".gguf", compare_shipped);
}
