// Directories of Hugging Face: what they say is what GGUF files say.
#include "model/files/open_checkpoint.hpp"
#include "model/program/load.hpp"
#include "model/tokenizer/make_tokenizer.hpp"
#include "tests/hugging_face_writer.hpp"
#include "tests/random.hpp"
#include "tests/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace lamella;
using model::special;

namespace {

struct fixture {
  tests::scratch_folder folder;
  std::filesystem::path path = folder / "Tiny-1.5";

  std::unique_ptr<model::checkpoint> open(const tests::hugging_face_model& made) {
    std::filesystem::remove_all(path);
    made.write(path);
    return model::open_checkpoint(path);
  }
};

/// Text of letters, digits, spaces, markers, bytes that are no UTF-8.
std::string random_text(tests::splitmix& random) {
  constexpr std::string_view parts[]{"the",    " and",   "hello", "ing",        "  ",    "\n",
                                     "42",     "\u4F60", "\xFF",  "<|im_end|>", "</s>",  "<s>",
                                     "\u00E9", "!",      " a",    "er",         "\u2581"};
  std::string text;
  for (auto left = random.below(30); left > 0; --left)
    text += random.below(4) == 0 ? std::string(1, static_cast<char>('a' + random.below(26)))
                                 : std::string{parts[random.below(std::size(parts))]};
  return text;
}

} // namespace

TEST_CASE_FIXTURE(fixture, "a directory tells the shapes that its GGUF file does") {
  for (const char* architecture :
       {"llama", "qwen2", "qwen3", "smollm3", "granite", "phi3", "olmo2"}) {
    CAPTURE(architecture);
    tests::tiny_model_options options;
    options.architecture = architecture;
    options.head_dim = 32;
    options.tied_embeddings = false;
    tests::write_tiny_model(folder / "tiny.gguf", options);
    std::filesystem::remove_all(path);
    tests::make_hugging_face_model(options).write(path);
    const auto file = model::load_program(folder / "tiny.gguf"), made = model::load_program(path);
    CHECK(model::to_text(*made.program) == model::to_text(*file.program));
    const auto &a = made.program->spec, &b = file.program->spec;
    CHECK(a.norm_epsilon == b.norm_epsilon);
    CHECK(a.rope_frequencies == b.rope_frequencies);
    CHECK(a.attention_scale() == b.attention_scale());
    CHECK(a.pairing == b.pairing);
    CHECK(a.context_tokens == b.context_tokens);
  }
}

TEST_CASE_FIXTURE(fixture, "what the checkpoint of a directory says of itself") {
  const auto opened = open(tests::make_hugging_face_model());
  CHECK(opened->path().filename() == "Tiny-1.5");
  CHECK(opened->file_name() == "Tiny-1.5"); // no ending is cut off
  CHECK(opened->name() == "Tiny-1.5");
  CHECK(opened->format() == "Hugging Face directory");
  CHECK(opened->architecture() == "llama");
  uint64_t bytes = 0;
  for (const auto& each : std::filesystem::directory_iterator(path)) bytes += each.file_size();
  CHECK(opened->file_bytes() == bytes);
  CHECK(opened->chat_template() == tests::tiny_model_options{}.chat_template);
  CHECK(opened->find_u64("block_count") == 3);
  CHECK(opened->find_f64("rope.freq_base") == 10000);
  CHECK_FALSE(opened->find_u64("expert_count"));
  CHECK(opened->describe().front().second == "llama");
  const auto before = opened->digest();
  CHECK(before == model::open_checkpoint(path)->digest());
  tests::gguf_writer::write_file(path / "chat_template.jinja", "{{ 1 }}");
  const auto other = model::open_checkpoint(path);
  CHECK(other->chat_template() == "{{ 1 }}"); // it wins over the one in tokenizer_config.json
  CHECK(other->digest() != before);
}

TEST_CASE_FIXTURE(fixture, "tokens of a directory are those of its GGUF file") {
  for (const bool pieces : {false, true}) {
    CAPTURE(pieces);
    tests::tiny_model_options options;
    options.sentencepiece = pieces;
    tests::write_tiny_model(folder / "tiny.gguf", options);
    std::filesystem::remove_all(path);
    tests::make_hugging_face_model(options).write(path);
    const auto file = model::load_model(folder / "tiny.gguf").text;
    const auto made = model::load_model(path).text;
    CHECK(made->vocabulary() == file->vocabulary());
    CHECK(made->bos() == file->bos());
    CHECK(made->eos() == file->eos());
    CHECK(made->adds_bos() == file->adds_bos());
    for (model::token_id id = 0; id < file->vocabulary(); ++id) {
      CAPTURE(id);
      REQUIRE(made->token_bytes(id) == file->token_bytes(id));
      REQUIRE(made->is_special(id) == file->is_special(id));
      REQUIRE(made->is_end(id) == file->is_end(id));
    }
    tests::splitmix random(11);
    for (int i = 0; i < 500; ++i) {
      const auto text = random_text(random);
      CAPTURE(text);
      const auto policy = i % 2 == 0 ? special::allowed : special::forbidden;
      const auto ids = made->encode(text, policy);
      REQUIRE(ids == file->encode(text, policy));
      REQUIRE(made->decode(ids) == file->decode(ids));
    }
  }
}

TEST_CASE_FIXTURE(fixture,
                  "rows of the table beyond the vocabulary are tokens that nobody writes") {
  auto made = tests::make_hugging_face_model();
  const auto words = tests::make_tiny_vocabulary();
  const json_value tokenizer{made.tokenizer};
  auto vocabulary = *tokenizer.find("model")->find("vocab")->get_if<json_value::object>();
  auto merges = *tokenizer.find("model")->find("merges")->get_if<json_value::array>();
  vocabulary.pop_back();
  merges.pop_back();
  tests::set_at(made.tokenizer, "model/vocab", vocabulary);
  tests::set_at(made.tokenizer, "model/merges", merges);
  const auto opened = open(made);
  const auto& tokens = opened->tokenizer().tokens;
  REQUIRE(tokens.size() == words.tokens.size());
  CHECK(tokens.back() == "[PAD" + std::to_string(tokens.size() - 1) + "]");
  CHECK(opened->tokenizer().kinds.back() == model::token_kind::unused);
  const auto text = model::make_tokenizer(opened->tokenizer());
  for (const auto id : text->encode(tokens.back() + " and", special::allowed))
    CHECK(id + 1 < tokens.size());
}

// As LLaMA-2's are: they were not learned.
TEST_CASE_FIXTURE(fixture, "merges of runs of spaces may be mixed") {
  tests::tiny_model_options options;
  options.sentencepiece = true;
  auto made = tests::make_hugging_face_model(options);
  const json_value tokenizer{made.tokenizer};
  auto vocabulary = *tokenizer.find("model")->find("vocab")->get_if<json_value::object>();
  auto merges = *tokenizer.find("model")->find("merges")->get_if<json_value::array>();
  const auto spaces = [](size_t count) {
    std::string text;
    while (count-- > 0) text += "\u2581";
    return text;
  };
  const auto three = static_cast<model::token_id>(vocabulary.size()), four = three + 1;
  vocabulary.emplace_back(spaces(3), three);
  vocabulary.emplace_back(spaces(4), four);
  for (const auto& [left, right] : {std::pair{1, 3}, {1, 2}, {3, 1}, {2, 1}, {2, 2}})
    merges.push_back(json_value::array{spaces(left), spaces(right)});
  tests::set_at(made.tokenizer, "model/vocab", vocabulary);
  tests::set_at(made.tokenizer, "model/merges", merges);
  const auto source = open(made)->tokenizer();
  CHECK(source.scores[three] == source.scores[four]);
  const auto text = model::make_tokenizer(source);
  const auto ids = text->encode("          a", special::forbidden); // one space is put before
  const auto two = std::find(source.tokens.begin(), source.tokens.end(), spaces(2));
  REQUIRE(ids.size() == 4);
  CHECK(std::vector(ids.begin(), ids.begin() + 2) == std::vector{four, four});
  CHECK(ids[2] == static_cast<model::token_id>(two - source.tokens.begin()));
}

TEST_CASE_FIXTURE(fixture, "ends of answers are those of all files that list some") {
  auto made = tests::make_hugging_face_model();
  tests::set(made.config, "eos_token_id", json_value::array{2, 0});
  std::filesystem::remove_all(path);
  made.write(path);
  tests::gguf_writer::write_file(path / "generation_config.json", R"({"eos_token_id": 1})");
  const auto text = model::load_model(path).text;
  CHECK(text->eos() == 2);
  for (model::token_id id = 0; id < 5; ++id) CHECK(text->is_end(id) == (id < 3));

  tests::gguf_writer::write_file(path / "generation_config.json", R"({"eos_token_id": [1, 999]})");
  CHECK_THROWS_WITH_AS(model::load_model(path), doctest::Contains("eos_token_id"), file_error);
}

TEST_CASE_FIXTURE(fixture, "beginnings of texts are told by the settings, or the post-processor") {
  tests::tiny_model_options options;
  options.sentencepiece = true;
  auto made = tests::make_hugging_face_model(options);
  const auto adds = [&] { return model::make_tokenizer(open(made)->tokenizer())->adds_bos(); };
  CHECK(adds());
  tests::set(made.settings, "add_bos_token", nullptr);
  CHECK(adds());
  tests::set(made.settings, "add_bos_token", false);
  CHECK_FALSE(adds());
  tests::set(made.settings, "add_bos_token", nullptr);
  tests::set(made.tokenizer, "post_processor", nullptr);
  CHECK_FALSE(adds());
}

TEST_CASE_FIXTURE(fixture, "added tokens are control tokens if the file says so or they look so") {
  auto made = tests::make_hugging_face_model();
  const json_value tokenizer{made.tokenizer};
  auto added = *tokenizer.find("added_tokens")->get_if<json_value::array>();
  const auto first = static_cast<model::token_id>(tests::make_tiny_vocabulary().tokens.size());
  const auto add = [&](const char* text, bool special, bool takes_space) {
    added.push_back(json_value::object{{"id", uint64_t{first + added.size() - 3}},
                                       {"content", text},
                                       {"special", special},
                                       {"rstrip", takes_space}});
  };
  add("<tool>", false, false);
  add("<|user|>", false, true);
  add("<\uFF5CUser\uFF5C>", false, false);
  add("[INST]", true, false);
  tests::set(made.tokenizer, "added_tokens", added);
  const auto source = open(made)->tokenizer();
  using model::token_kind;
  const std::vector found(source.kinds.begin() + first, source.kinds.end());
  CHECK(found
        == std::vector{token_kind::user_defined, token_kind::control, token_kind::control,
                       token_kind::control});
  CHECK(source.take_space == std::vector{first + 1});
}

TEST_CASE_FIXTURE(fixture, "a chat template may have a name") {
  auto made = tests::make_hugging_face_model();
  const auto named = [](const char* name, const char* text) {
    return json_value::object{{"name", name}, {"template", text}};
  };
  tests::set(made.settings, "chat_template",
             json_value::array{named("tool_use", "{{ 1 }}"), named("default", "{{ 2 }}")});
  CHECK(open(made)->chat_template() == "{{ 2 }}");
  tests::set(made.settings, "chat_template", nullptr);
  CHECK(open(made)->chat_template().empty());
  tests::set(made.settings, "chat_template", json_value::array{named("rag", "{{ 3 }}")});
  CHECK_THROWS_WITH_AS(open(made), doctest::Contains("'default'"), file_error);
}

TEST_CASE_FIXTURE(fixture, "pre-tokenisers are recognised by their expressions") {
  const auto split = [](const char* expression, const char* behaviour, bool invert) {
    const json_value::object cut{{"type", "Split"},
                                 {"pattern", json_value::object{{"Regex", expression}}},
                                 {"behavior", behaviour},
                                 {"invert", invert}};
    const json_value::object bytes{
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    return json_value::object{{"type", "Sequence"},
                              {"pretokenizers", json_value::array{cut, bytes}}};
  };
  constexpr const char* qwen2 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                                R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr const char* llama3 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
      R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  auto made = tests::make_hugging_face_model();
  const auto pre = [&](json_value rules) {
    tests::set(made.tokenizer, "pre_tokenizer", std::move(rules));
    return open(made)->tokenizer().pre;
  };
  CHECK(pre(split(qwen2, "Isolated", false)) == "qwen2");
  CHECK(pre(split(llama3, "Isolated", false)) == "llama-bpe");
  CHECK(pre(split(llama3, "Removed", true)) == "llama-bpe");
  CHECK_FALSE(*open(made)->tokenizer().whole_words);
  tests::set_at(made.tokenizer, "model/ignore_merges", true);
  CHECK(*open(made)->tokenizer().whole_words);
  CHECK(pre(json_value::object{{"type", "ByteLevel"}, {"add_prefix_space", false}}) == "gpt-2");
  CHECK_THROWS_WITH_AS(pre(split(llama3, "Removed", false)), doctest::Contains("behavior"),
                       file_error);
  CHECK_THROWS_WITH_AS(pre(split("[a-z]+", "Isolated", false)),
                       doctest::Contains("tokenizer.json: pre_tokenizer.pretokenizers[0]"
                                         ".pattern.Regex: '[a-z]+' is not one of"),
                       file_error);
}

TEST_CASE_FIXTURE(fixture, "LLaMA-3's scaling leaves fast pairs and divides slow ones") {
  tests::tiny_model_options options;
  options.head_dim = 32;
  options.rope_base = 5e5f;
  auto made = tests::make_hugging_face_model(options);
  tests::set(made.config, "rope_scaling",
             json_value::object{{"rope_type", "llama3"},
                                {"factor", 8.0},
                                {"low_freq_factor", 1.0},
                                {"high_freq_factor", 4.0},
                                {"original_max_position_embeddings", 128}});
  open(made);
  const auto frequencies = model::load_program(path).program->spec.rope_frequencies;
  REQUIRE(frequencies.size() == 16);
  size_t kept = 0, divided = 0;
  for (size_t i = 0; i < 16; ++i) {
    const auto plain = std::pow(5e5, -2.0 * static_cast<double>(i) / 32);
    const auto turns = 128 * plain / (2 * std::numbers::pi);
    const auto ratio = plain / frequencies[i];
    CAPTURE(turns);
    if (turns >= 4) CHECK(ratio == doctest::Approx(1));
    if (turns <= 1) CHECK(ratio == doctest::Approx(8));
    CHECK(ratio >= 1);
    CHECK(ratio <= 8 * (1 + 1e-6)); // divisors are kept in single precision
    kept += turns >= 4;
    divided += turns <= 1;
  }
  CHECK(kept > 0);
  CHECK(divided > 0);
  CHECK(kept + divided < 16);
}

TEST_CASE_FIXTURE(fixture, "newer configurations have all of rotations in one object") {
  auto made = tests::make_hugging_face_model();
  tests::set(made.config, "rope_theta", nullptr);
  tests::set(made.config, "rope_parameters",
             json_value::object{{"rope_type", "linear"}, {"rope_theta", 5e5}, {"factor", 4.0}});
  const auto opened = open(made);
  CHECK(opened->find_f64("rope.freq_base") == 5e5);
  CHECK(opened->find_text("rope.scaling.type") == "linear");
  CHECK(opened->find_f64("rope.scaling.factor") == 4);
}

TEST_CASE_FIXTURE(fixture, "the magnitude of long contexts follows from both of them") {
  tests::tiny_model_options options;
  options.architecture = "phi3";
  options.rope_long = true;
  const auto opened = open(tests::make_hugging_face_model(options));
  CHECK(*opened->find_f64("rope.scaling.attn_factor")
        == doctest::Approx(std::sqrt(1 + std::log(4.0) / std::log(128.0))));
  CHECK(opened->find("rope_factors_long.weight")->inner == 8);
}

TEST_CASE_FIXTURE(fixture, "windows count where the class of models has them and uses them") {
  tests::tiny_model_options options;
  auto made = tests::make_hugging_face_model(options);
  tests::set(made.config, "sliding_window", 64);
  CHECK_FALSE(open(made)->find_u64("attention.sliding_window"));
  tests::set(made.config, "architectures", json_value::array{"MistralForCausalLM"});
  CHECK(open(made)->find_u64("attention.sliding_window") == 64);
  tests::set(made.config, "sliding_window", nullptr);
  CHECK_FALSE(open(made)->find_u64("attention.sliding_window"));
  options.architecture = "qwen2";
  made = tests::make_hugging_face_model(options);
  tests::set(made.config, "sliding_window", 64);
  tests::set(made.config, "use_sliding_window", false);
  CHECK_FALSE(open(made)->find_u64("attention.sliding_window"));
  tests::set(made.config, "use_sliding_window", true);
  CHECK(open(made)->find_u64("attention.sliding_window") == 64);
  tests::set(made.config, "layer_types", json_value::array{"full_attention", "full_attention"});
  CHECK_FALSE(open(made)->find_u64("attention.sliding_window"));
}
