// Token ids against an oracle that nobody here wrote (tokenizer_golden.py), on ten thousand texts
// per family of pre-tokenisers: code, many scripts, emoji, long white space, control characters.
#include "model/checkpoint.hpp"
#include "model/detokenizer.hpp"
#include "model/tokenizer.hpp"
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

std::vector<uint32_t> read_hashes(const std::string& family) {
  std::ifstream in(LAMELLA_SOURCE_DIR "/tests/golden/tokenizer_" + family + ".txt");
  std::string line;
  std::getline(in, line); // says what the hashes were made from
  std::vector<uint32_t> hashes;
  for (std::string word; in >> word;)
    hashes.push_back(static_cast<uint32_t>(std::stoul(word, nullptr, 16)));
  return hashes;
}

/// `text` without the bytes that the vocabulary has no token for.
std::string representable(const model::tokenizer& tokens, const std::string& text) {
  std::string kept;
  for (const char c : text)
    if (tokens.has_byte(static_cast<unsigned char>(c))) kept += c;
  return kept;
}

std::string stream(const model::tokenizer& tokens, std::span<const token_id> ids) {
  model::detokenizer out(tokens, model::detokenizer::specials::shown);
  std::string text;
  for (const token_id id : ids) text += out.push(id);
  return text + out.finish();
}

void compare(const std::string& family, const std::string& pre, const std::filesystem::path& file) {
  const auto hashes = read_hashes(family);
  REQUIRE(hashes.size() >= 10'000);
  const auto opened = model::open_checkpoint(file);
  if (opened->tokenizer().pre != pre) {
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
  for (uint64_t number = 0; number < hashes.size(); ++number) {
    const std::string text = tests::make_text(number, table);
    const auto plain = tokens->encode(text, model::special::forbidden);
    const auto control = tokens->encode(text, model::special::allowed);
    const token_id separator = ~token_id{0};
    uint64_t state = hash_ids(plain, 0xCBF29CE484222325u);
    state = hash_ids(std::span(&separator, 1), state);
    state = hash_ids(control, state);
    const auto folded = static_cast<uint32_t>(state ^ state >> 32);
    if (folded != hashes[number] && ++different <= 5) {
      CAPTURE(number);
      CAPTURE(text);
      CHECK(folded == hashes[number]);
    }
    const std::string kept = all_bytes ? text : representable(*tokens, text);
    if (tokens->decode(plain) != kept || tokens->decode(control) != kept) {
      CAPTURE(number);
      FAIL_CHECK("decode(encode(text)) differs from the text");
    }
    if (all_bytes && stream(*tokens, plain) != text) {
      CAPTURE(number);
      FAIL_CHECK("the streamed text differs from the text");
    }
    for (const token_id id : plain)
      if (tokens->is_special(id)) FAIL("a control token out of untrusted text, number " << number);
  }
  CHECK(different == 0);
  MESSAGE(hashes.size() << " texts of family " << family << " compared with the oracle");
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

TEST_CASE("tokens equal those that transformers gave for the texts beside the vocabularies") {
  for (const char* name :
       {"ggml-vocab-gpt-2.gguf", "ggml-vocab-llama-bpe.gguf", "ggml-vocab-starcoder.gguf"})
    with_vocabulary(name, compare_shipped);
}
