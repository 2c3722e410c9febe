// Directories of Hugging Face that are damaged, hostile, or of a kind that is not known.
#include "model/program/load.hpp"
#include "tests/hugging_face_writer.hpp"
#include "tests/random.hpp"
#include "tests/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <iterator>

using namespace lamella;
using tests::hugging_face_model, tests::set, tests::set_at;

namespace {

struct fixture {
  tests::scratch_folder folder;
  std::filesystem::path path = folder / "tiny";

  /// The words with which a model is refused; empty if it is not.
  std::string refusal(const hugging_face_model& made) {
    std::filesystem::remove_all(path);
    made.write(path);
    return refusal();
  }
  std::string refusal() {
    try {
      model::load_model(path);
    } catch (const file_error& error) {
      CHECK_FALSE(error.field().empty());
      return error.what();
    }
    return {};
  }
};

/// What makes a model wrong, and what is said of it.
struct wrong {
  std::function<void(hugging_face_model&)> damage;
  const char* words;
};

wrong config(const char* field, json_value value, const char* words) {
  return {[=](hugging_face_model& m) { set_at(m.config, field, value); }, words};
}
wrong tokenizer(const char* path, json_value value, const char* words) {
  return {[=](hugging_face_model& m) { set_at(m.tokenizer, path, value); }, words};
}
wrong header(const char* path, json_value value, const char* words) {
  return {[=](hugging_face_model& m) { set_at(m.shards[0].header, path, value); }, words};
}

void check_all(fixture& f, const std::vector<wrong>& cases,
               const tests::tiny_model_options& options = {}) {
  CHECK(f.refusal(tests::make_hugging_face_model(options)) == "");
  for (const auto& [damage, words] : cases) {
    auto made = tests::make_hugging_face_model(options);
    damage(made);
    const auto said = f.refusal(made);
    INFO("said: " << said << "\n  not: " << std::string{words});
    CHECK(said.find(words) != std::string::npos);
  }
}

json_value scaling(std::string_view type, json_value::object more = {}) {
  more.emplace_back("rope_type", type);
  return more;
}

} // namespace

TEST_CASE_FIXTURE(fixture, "configurations that are not known are refused by name") {
  check_all(
      *this,
      {
          config("architectures", nullptr, "config.json: architectures: is required"),
          config(
              "architectures", json_value::array{"GPT2LMHeadModel"},
              "architectures[0]: 'GPT2LMHeadModel' is not supported; known are LlamaForCausalLM"),
          config("architectures", json_value::array{"LlamaForCausalLM", "LlamaForCausalLM"},
                 "architectures"),
          config("hidden_act", "gelu", "hidden_act: is \"gelu\"; \"silu\" is supported"),
          config("quantization_config", json_value::object{{"quant_method", "awq"}},
                 "quantization_config: says that weights are quantised by awq"),
          config("rope_interleaved", true, "rope_interleaved"),
          config("num_experts", 8, "num_experts"),
          config("embedding_multiplier", 12.0, "embedding_multiplier: is 12.0; 1.0 is supported"),
          config("final_logit_softcapping", 30.0, "final_logit_softcapping"),
          config("partial_rotary_factor", 0.5, "partial_rotary_factor"),
          config("num_hidden_layers", nullptr, "config.json: num_hidden_layers: is missing"),
          config("num_hidden_layers", 0, "config.json: num_hidden_layers: is 0, must be 1 to"),
          config("num_hidden_layers", -1, "num_hidden_layers: must be an integer"),
          config("num_hidden_layers", "3", "num_hidden_layers: must be an integer"),
          config("num_hidden_layers", 4, "'model.layers.3."),
          config("num_hidden_layers", 2, "'model.layers.2."),
          config("num_hidden_layers", 1u << 30, "num_hidden_layers: is 1073741824"),
          config("hidden_size", 95, "hidden_size"),
          config("hidden_size", 0, "hidden_size"),
          config("num_attention_heads", 0, "num_attention_heads"),
          config("num_attention_heads", 3, "model.layers.0.self_attn.k_proj.weight"),
          config("num_key_value_heads", 4, "num_key_value_heads: 4 does not divide the 6"),
          config("num_key_value_heads", 2, "model.layers.0.self_attn.k_proj.weight"),
          config("head_dim", 15, "15 is odd"),
          config("rms_norm_eps", 0.0, "rms_norm_eps"),
          config("rope_theta", 0.0, "rope_theta"),
          config("max_position_embeddings", 0, "max_position_embeddings"),
          config("vocab_size", 5, "vocab_size: is 5, the embedding table has"),
          config("tie_word_embeddings", false, "'lm_head.weight': is missing"),
          config("tie_word_embeddings", "yes", "tie_word_embeddings: must be true or false"),
          config("eos_token_id", json_value::array{2, 5000}, "eos_token_id: is 5000"),
          config("eos_token_id", "2", "eos_token_id"),
          config("layer_types", json_value::array{"linear_attention"},
                 "layer_types[0]: 'linear_attention' is not supported"),
          config("layer_types", json_value::array{"sliding_attention"}, "layer_types"),
          config("rope_scaling", "linear", "rope_scaling: must be an object"),
          config("rope_scaling", scaling("dynamic", {{"factor", 2.0}}),
                 "rope_scaling.rope_type: 'dynamic' is not supported; known are"),
          config("rope_scaling", scaling("linear"), "rope_scaling.factor: is required"),
          config("rope_scaling", scaling("linear", {{"factor", 0.0}}), "rope_scaling.factor"),
          config("rope_scaling", scaling("linear", {{"factor", 2.0}, {"bend", 1}}),
                 "rope_scaling.bend: is not known for scaling 'linear'"),
          config("rope_scaling", scaling("linear", {{"factor", 2.0}, {"type", "yarn"}}),
                 "rope_scaling.type: differs from rope_type"),
          config("rope_scaling", scaling("yarn", {{"factor", 2.0}, {"mscale", 1.0}}),
                 "rope_scaling.mscale"),
          config("rope_scaling", scaling("yarn", {{"factor", 2.0}, {"truncate", false}}),
                 "rope_scaling.truncate"),
          config("rope_scaling", scaling("yarn", {{"factor", 0.5}}), "rope_scaling.factor"),
          config("rope_scaling",
                 scaling("llama3",
                         {{"factor", 8.0}, {"low_freq_factor", 4.0}, {"high_freq_factor", 1.0}}),
                 "rope_scaling.low_freq_factor: must be less"),
          config("rope_scaling", scaling("longrope"), "rope_scaling.short_factor: is required"),
          config("rope_scaling",
                 scaling("longrope", {{"short_factor", json_value::array{1.0}},
                                      {"long_factor", json_value::array{1.0}}}),
                 "rope_scaling.short_factor: must be an array"),
      });
}

TEST_CASE_FIXTURE(fixture, "SmolLM3's layers that do not rotate are where they always are") {
  tests::tiny_model_options options;
  options.architecture = "smollm3";
  options.layers = 5;
  check_all(*this,
            {config("no_rope_layers", json_value::array{1, 1, 0, 1, 1},
                    "no_rope_layers[2]: is not as in SmolLM3"),
             config("no_rope_layer_interval", 3, "no_rope_layer_interval: must be 4")},
            options);
  auto made = tests::make_hugging_face_model(options);
  set(made.config, "no_rope_layers", json_value::array{1, 1, 1, 0, 1});
  CHECK(refusal(made) == "");
}

TEST_CASE_FIXTURE(fixture, "tokenizer.json that is not known is refused by name") {
  const json_value::object byte_level{{"type", "ByteLevel"}, {"add_prefix_space", true}};
  check_all(
      *this,
      {
          tokenizer("model", nullptr, "tokenizer.json: model: is required"),
          tokenizer("model/type", "Unigram", "model.type: 'Unigram' is not supported"),
          tokenizer("model/dropout", 0.1, "model.dropout"),
          tokenizer("model/end_of_word_suffix", "</w>", "model.end_of_word_suffix: '</w>'"),
          tokenizer("model/byte_fallback", true, "model.byte_fallback"),
          tokenizer("model/vocab", json_value::object{}, "model.vocab"),
          tokenizer("model/vocab/x", 5, "model.vocab.x: has id 5"),
          tokenizer("model/vocab/x", 900, "model.vocab: has no token of id"),
          tokenizer("model/vocab/x", -1, "model.vocab.x: must be an integer"),
          tokenizer("model/vocab/x", 1u << 20, "model.vocab.x: must be an integer"),
          tokenizer("model/merges", nullptr, "model.merges: is required"),
          tokenizer("model/merges/1", "h", "model.merges[1]: is not two tokens"),
          tokenizer("model/merges/1", "h e e", "model.merges[1]: is not two tokens"),
          tokenizer("model/merges/1", json_value::array{"h"}, "model.merges[1]: must be an array"),
          tokenizer("model/merges/1", "h zz",
                    "model.merges[1]: needs 'zz', which is not in the vocabulary"),
          tokenizer("model/merges/1", "h z", "model.merges[1]: needs 'hz'"),
          tokenizer("normalizer", json_value::object{{"type", "Lowercase"}},
                    "normalizer.type: 'Lowercase' is not supported"),
          tokenizer("pre_tokenizer", json_value::object{{"type", "Whitespace"}},
                    "pre_tokenizer.type: 'Whitespace' is not supported"),
          tokenizer("pre_tokenizer", byte_level, "pre_tokenizer.add_prefix_space: must be false"),
          tokenizer("pre_tokenizer/pretokenizers/0/individual_digits", false,
                    "pre_tokenizer.pretokenizers[0].individual_digits"),
          tokenizer("pre_tokenizer/pretokenizers", json_value::array{byte_level, byte_level},
                    "pre_tokenizer.pretokenizers[0].add_prefix_space"),
          tokenizer("pre_tokenizer", nullptr, "model.byte_fallback: must be true"),
          tokenizer("post_processor", json_value::object{{"type", "BertProcessing"}},
                    "post_processor.type: 'BertProcessing' is not supported"),
          tokenizer("added_tokens/1/id", 7, "added_tokens[1].content"),
          tokenizer("added_tokens/1/content", "", "added_tokens[1].content"),
          tokenizer("added_tokens/1/lstrip", true, "added_tokens[1].lstrip: must be false"),
          {[](auto& m) { set_at(m.settings, "add_bos_token", 1); },
           "tokenizer_config.json: add_bos_token: must be true or false"},
          {[](auto& m) { set_at(m.settings, "bos_token", 1); }, "bos_token: must be a string"},
          {[](auto& m) { set_at(m.settings, "chat_template", 1); }, "chat_template"},
      });
}

TEST_CASE_FIXTURE(fixture,
                  "pieces whose merges are not those of a SentencePiece model are refused") {
  tests::tiny_model_options options;
  options.sentencepiece = true;
  const auto merges = [](const std::function<void(json_value::array&)>& change) {
    return [=](hugging_face_model& m) {
      const json_value all{m.tokenizer};
      auto list = *all.find("model")->find("merges")->get_if<json_value::array>();
      change(list);
      set_at(m.tokenizer, "model/merges", list);
    };
  };
  check_all(
      *this,
      {
          {merges([](auto& x) { x.pop_back(); }), "model.merges: has 0 merges for"},
          {merges([](auto& x) { x.push_back(x.front()); }), "must be in the order of their scores"},
          tokenizer("model/unk_token", "<none>", "model.unk_token: needs '<none>'"),
          tokenizer("model/ignore_merges", true, "model.ignore_merges"),
          tokenizer("pre_tokenizer/replacement", "_", "pre_tokenizer.replacement: is '_'"),
          tokenizer("pre_tokenizer/split", true, "pre_tokenizer.split: must be false"),
          tokenizer("pre_tokenizer/prepend_scheme", "last", "pre_tokenizer.prepend_scheme"),
          tokenizer("pre_tokenizer", nullptr, "normalizer: must replace spaces by U+2581"),
          tokenizer("normalizer", json_value::object{{"type", "NFKC"}}, "normalizer.type: 'NFKC'"),
      },
      options);
}

TEST_CASE_FIXTURE(fixture, "safetensors that lie are refused with tensor and field") {
  const auto data = [](int64_t more) {
    return [=](hugging_face_model& m) {
      auto& bytes = m.shards[0].data;
      bytes.resize(bytes.size() + static_cast<size_t>(more));
    };
  };
  check_all(
      *this,
      {
          header("model.norm.weight/dtype", "F64",
                 "model.safetensors: tensor 'model.norm.weight'.dtype: is F64; F32 F16 BF16"),
          header("model.norm.weight/dtype", "f32", "dtype: is f32"),
          header("model.norm.weight/dtype", 32, "dtype: must be a string"),
          header("model.norm.weight/dtype", nullptr, "dtype: is required"),
          header("model.norm.weight/dtype", "F16", "data_offsets: are"),
          header("model.norm.weight/shape", json_value::array{}, "shape: must be an array of 1"),
          header("model.norm.weight/shape", json_value::array{0}, "shape[0]: must be an integer"),
          header("model.norm.weight/shape", json_value::array{-96}, "shape[0]"),
          header("model.norm.weight/shape", json_value::array{95}, "but type and shape make 380"),
          header("model.norm.weight/shape", json_value::array{1u << 30, 1u << 30},
                 "which makes the tensor too large"),
          header("model.norm.weight/shape", json_value::array{2, 48},
                 "tensor 'model.norm.weight': has 2 rows of 48, must have 1 of 96"),
          header("model.norm.weight/shape", json_value::array{1, 1, 1, 1, 96}, "of 1 to 4 items"),
          header("model.norm.weight/data_offsets", json_value::array{0}, "data_offsets"),
          header("model.norm.weight/data_offsets", json_value::array{0, 384}, "the two overlap"),
          header("model.norm.weight/data_offsets", json_value::array{384, 0}, "data_offsets"),
          header("model.norm.weight/data_offsets", json_value::array{~uint64_t{0}, 383},
                 "data_offsets"),
          header("model.norm.weight/colour", "red", "has an unknown field 'colour'"),
          header("model.norm.weight", 5, "tensor 'model.norm.weight': must be an object"),
          header("__metadata__", json_value::object{{"format", 5}}, "__metadata__"),
          {[](auto& m) { m.shards[0].header.pop_back(); }, "data (at byte"},
          {[](auto& m) { m.shards[0].header.erase(m.shards[0].header.begin() + 1); },
           "between them are bytes of none"},
          {data(4), "goes on for 4 bytes after the last tensor"},
          {data(-4), "is the file cut off?"},
          {[](auto& m) { m.shards[0].add("model.bias", "F32", {1}, std::string(4, 0)); },
           "tensor 'model.bias': is not part of architecture 'llama'"},
          {[](auto& m) { m.shards[0].add("blk.0.attn_q.weight", "F32", {1}, std::string(4, 0)); },
           "appears twice"},
          {[](auto& m) { m.shards[0].header[3].first += "s"; }, "tensor 'model.layers.0."},
      });
  auto fine = tests::make_hugging_face_model();
  set(fine.shards[0].header, "__metadata__", json_value::object{{"format", "pt"}});
  fine.shards[0].add("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {2},
                     std::string(8, 0));                               // old files have these
  fine.shards[0].add("lm_head.weight", "F32", {1}, std::string(4, 0)); // of no use: it is tied
  CHECK(refusal(fine) == "");
}

TEST_CASE_FIXTURE(fixture, "headers of safetensors that are none are refused with their place") {
  const auto made = tests::make_hugging_face_model();
  made.write(path);
  const auto file = path / "model.safetensors";
  const auto whole = made.shards[0].file();
  const auto refused = [&](const std::string& bytes) {
    tests::gguf_writer::write_file(file, bytes);
    return refusal();
  };
  const auto with_header = [](const std::string& text) {
    return tests::gguf_writer::raw(uint64_t{text.size()}) + text;
  };
  const auto has = [](const std::string& text, const char* words) {
    CAPTURE(text);
    CHECK(text.find(words) != std::string::npos);
  };
  has(refused(whole.substr(0, 7)), "header length (at byte 0): needs 8 bytes, the file has 7");
  has(refused(whole.substr(0, 100)), "is the file cut off?");
  has(refused(tests::gguf_writer::raw(uint64_t{100'000'001})), "at most 100000000 is allowed");
  has(refused(tests::gguf_writer::raw(~uint64_t{0}) + whole), "at most 100000000 is allowed");
  has(refused(with_header("")), "header (at byte 8)");
  has(refused(with_header("[]")), "header: must be an object");
  has(refused(with_header("{\"a\":")), "the text is truncated");
  has(refused(with_header("{} x")), "header (at byte");
  has(refused(with_header(R"({"a":{"shape":[[[1]]]}})")), "nested deeper than 4 levels");
  has(refused(with_header(R"({"a":1,"a":1})")), "the key \"a\" occurs twice");
  has(refused(with_header(R"({"":{}})")), "must have a name");
  std::string many = "{";
  for (int i = 0; i <= 65'537; ++i) many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  has(refused(with_header(many + "}")), "more than 65537 members");
}

TEST_CASE_FIXTURE(fixture, "an index leads to the files beside it and nowhere else") {
  auto made = tests::make_hugging_face_model({}, 3);
  CHECK(refusal(made) == "");
  const auto refused = [&](const char* file) {
    auto other = made;
    other.weight_map[4].second = file;
    return refusal(other);
  };
  const auto name = made.weight_map[4].first;
  CHECK(refused("../model-1.safetensors").find("weight_map." + name + ": is '../model-1")
        != std::string::npos);
  CHECK(refused("/etc/passwd").find("must be the name of a .safetensors file")
        != std::string::npos);
  CHECK(refused("model-9.safetensors").find("is not listed for this file") != std::string::npos);
  CHECK(refused("model-1.safetensors").find("weight_map." + name + ": is not in model-1")
        != std::string::npos);
  auto missing = made;
  missing.weight_map.emplace_back("model.more.weight", "model-1.safetensors");
  CHECK(refusal(missing).find("weight_map.model.more.weight: is not in model-1.safetensors")
        != std::string::npos);
  // A second set of weights beside those of the index: which one is meant?
  made.write(path);
  tests::gguf_writer::write_file(path / "model.safetensors", "x");
  CHECK(refusal().find("there are two sets: model.safetensors, and the files that")
        != std::string::npos);
}

TEST_CASE_FIXTURE(fixture, "files that are missing or no JSON are named") {
  const auto made = tests::make_hugging_face_model();
  const auto without = [&](const char* name, const char* instead) {
    std::filesystem::remove_all(path);
    made.write(path);
    std::filesystem::remove(path / name);
    if (instead != nullptr) tests::gguf_writer::write_file(path / instead, "x");
    return refusal();
  };
  CHECK(without("config.json", nullptr).find("config.json: no such file") != std::string::npos);
  CHECK(without("tokenizer.json", "tokenizer.model").find("; tokenizer.model is not read")
        != std::string::npos);
  CHECK(without("model.safetensors", "pytorch_model.bin").find("; pytorch_model.bin is not read")
        != std::string::npos);
  CHECK(without("tokenizer_config.json", nullptr) == "");
  CHECK(without("config.json", "config.json").find("config.json: JSON (at byte 0)")
        != std::string::npos);
  CHECK(
      without("chat_template.jinja", "generation_config.json").find("generation_config.json: JSON")
      != std::string::npos);
}

TEST_CASE_FIXTURE(fixture, "whatever byte of a directory is wrong, it opens or says why") {
  const auto made = tests::make_hugging_face_model();
  made.write(path);
  for (const char* name :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}) {
    CAPTURE(name);
    std::string bytes;
    {
      std::ifstream in(path / name, std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    tests::splitmix random(3);
    size_t refused = 0;
    for (int i = 0; i < 150; ++i) {
      auto damaged = bytes;
      const auto at = random.below(std::min<size_t>(bytes.size(), 6000));
      damaged[at] = static_cast<char>(damaged[at] ^ (1 + random.below(255)));
      tests::gguf_writer::write_file(path / name, damaged);
      refused += refusal().empty() ? 0 : 1;
      tests::gguf_writer::write_file(path / name, bytes.substr(0, random.below(bytes.size())));
      CHECK_FALSE(refusal().empty());
    }
    CHECK(refused > 20);
    tests::gguf_writer::write_file(path / name, bytes);
  }
}
