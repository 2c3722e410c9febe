/// Writes the tiny models of tests/tiny_model.hpp as directories of Hugging Face, right ones and
/// wrong ones.
#pragma once

#include "base/json_writer.hpp"
#include "tests/tiny_model.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::tests {

/// Sets a member of an object; one that is there already gets the new value.
inline void set(json_value::object& object, std::string_view key, json_value value) {
  for (auto& [name, old] : object)
    if (name == key) {
      old = std::move(value);
      return;
    }
  object.emplace_back(key, std::move(value));
}

/// Sets what lies at a path of keys and indexes with slashes between them, "model/merges/0".
inline json_value with(const json_value& from, std::string_view path, json_value value) {
  if (path.empty()) return value;
  const auto slash = path.find('/');
  const std::string key{path.substr(0, slash)};
  const auto rest = slash == path.npos ? std::string_view{} : path.substr(slash + 1);
  if (const auto* items = from.get_if<json_value::array>()) {
    auto made = *items;
    auto& item = made.at(std::stoul(key));
    item = with(item, rest, std::move(value));
    return made;
  }
  const auto* old = from.find(key);
  auto made = *from.get_if<json_value::object>();
  set(made, key, with(old != nullptr ? *old : json_value{}, rest, std::move(value)));
  return made;
}
inline void set_at(json_value::object& object, std::string_view path, json_value value) {
  object = *with(object, path, std::move(value)).get_if<json_value::object>();
}

/// Collects tensors and gives the bytes of a safetensors file. `header` may be made to lie.
class safetensors_writer {
public:
  json_value::object header;
  std::string data;

  void add(const std::string& name, std::string_view type, json_value::array shape,
           std::string_view bytes) {
    const json_value::array places{uint64_t{data.size()}, uint64_t{data.size() + bytes.size()}};
    header.emplace_back(
        name,
        json_value::object{{"dtype", type}, {"shape", std::move(shape)}, {"data_offsets", places}});
    data += bytes;
  }

  std::string file() const {
    auto text = to_json(header);
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return gguf_writer::raw(uint64_t{text.size()}) + text + data;
  }
};

/// The files of a model; tests may change them before they are written.
struct hugging_face_model {
  json_value::object config, tokenizer, settings; ///< tokenizer_config.json
  std::vector<safetensors_writer> shards;
  json_value::object weight_map;

  /// With one shard as model.safetensors, with several as files and an index.
  void write(const std::filesystem::path& folder) const {
    std::filesystem::create_directories(folder);
    const auto put = [&](const char* name, const json_value::object& value) {
      gguf_writer::write_file(folder / name, to_json(value));
    };
    put("config.json", config);
    put("tokenizer.json", tokenizer);
    put("tokenizer_config.json", settings);
    if (shards.size() == 1) {
      gguf_writer::write_file(folder / "model.safetensors", shards[0].file());
      return;
    }
    put("model.safetensors.index.json",
        {{"metadata", json_value::object{}}, {"weight_map", weight_map}});
    for (size_t i = 0; i < shards.size(); ++i)
      gguf_writer::write_file(folder / shard_name(i), shards[i].file());
  }

  static std::string shard_name(size_t i) {
    return "model-" + std::to_string(i + 1) + ".safetensors";
  }
};

namespace detail {

/// Classes of models whose GGUF files have pairs of rotated elements side by side.
inline bool lies_in_halves(const std::string& architecture) {
  return architecture == "llama" || architecture == "smollm3" || architecture == "granite";
}

/// Names as the hub's files have them.
inline std::string hub_name(const std::string& name, const std::string& architecture) {
  static const std::map<std::string, std::string> whole{
      {"token_embd.weight", "model.embed_tokens.weight"},
      {"output_norm.weight", "model.norm.weight"},
      {"output.weight", "lm_head.weight"}};
  static const std::map<std::string, std::string> parts{
      {"attn_norm", "input_layernorm"},
      {"ffn_norm", "post_attention_layernorm"},
      {"attn_q", "self_attn.q_proj"},
      {"attn_k", "self_attn.k_proj"},
      {"attn_v", "self_attn.v_proj"},
      {"attn_output", "self_attn.o_proj"},
      {"attn_qkv", "self_attn.qkv_proj"},
      {"attn_q_norm", "self_attn.q_norm"},
      {"attn_k_norm", "self_attn.k_norm"},
      {"ffn_gate", "mlp.gate_proj"},
      {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"},
      {"post_attention_norm", "post_attention_layernorm"},
      {"post_ffw_norm", "post_feedforward_layernorm"}};
  if (const auto found = whole.find(name); found != whole.end()) return found->second;
  const auto layer_end = name.find('.', 4), part_end = name.rfind('.');
  const auto part = name.substr(layer_end + 1, part_end - layer_end - 1);
  const auto there =
      architecture == "phi3" && part == "ffn_up" ? "mlp.gate_up_proj" : parts.at(part);
  return "model.layers." + name.substr(4, layer_end - 4) + "." + there + name.substr(part_end);
}

/// The rows with the first elements of all pairs of a head, then those with the second ones.
inline std::string in_halves(const std::string& data, size_t rows, size_t heads) {
  const size_t row = data.size() / rows, dim = rows / heads;
  std::string out;
  for (size_t head = 0; head < heads; ++head)
    for (size_t second = 0; second < 2; ++second)
      for (size_t pair = 0; pair < dim / 2; ++pair)
        out += data.substr((head * dim + 2 * pair + second) * row, row);
  return out;
}

inline json_value::object make_config(const tiny_model_options& o, uint64_t vocabulary) {
  static const std::map<std::string, const char*> classes{
      {"llama", "LlamaForCausalLM"},     {"qwen2", "Qwen2ForCausalLM"},
      {"qwen3", "Qwen3ForCausalLM"},     {"smollm3", "SmolLM3ForCausalLM"},
      {"granite", "GraniteForCausalLM"}, {"olmo2", "Olmo2ForCausalLM"},
      {"phi3", "Phi3ForCausalLM"}};
  json_value::object c{{"architectures", json_value::array{classes.at(o.architecture)}},
                       {"hidden_act", "silu"},
                       {"num_hidden_layers", o.layers},
                       {"hidden_size", o.embedding},
                       {"intermediate_size", o.feed_forward},
                       {"num_attention_heads", o.heads},
                       {"num_key_value_heads", o.kv_heads},
                       {"max_position_embeddings", o.context},
                       {"rms_norm_eps", double{1e-5f}},
                       {"rope_theta", double{o.rope_base}},
                       {"rope_scaling", nullptr},
                       {"tie_word_embeddings", o.tied_embeddings},
                       {"vocab_size", vocabulary},
                       {"bos_token_id", 1},
                       {"eos_token_id", 2}};
  if (o.head_dim * o.heads != o.embedding) c.emplace_back("head_dim", o.head_dim);
  if (o.rotated != 0)
    c.emplace_back("partial_rotary_factor", static_cast<double>(o.rotated) / o.head_dim);
  if (o.rope_yarn != 0)
    set(c, "rope_scaling",
        json_value::object{{"rope_type", "yarn"},
                           {"factor", double{o.rope_yarn}},
                           {"original_max_position_embeddings", o.context / 4}});
  if (o.rope_long) {
    json_value::array near, far;
    for (uint32_t i = 0; i < (o.rotated == 0 ? o.head_dim : o.rotated) / 2; ++i) {
      near.emplace_back(double{1 + 0.02f * static_cast<float>(i)});
      far.emplace_back(double{1 + 0.9f * static_cast<float>(i)});
    }
    set(c, "original_max_position_embeddings", o.context / 4);
    set(c, "rope_scaling",
        json_value::object{{"type", "longrope"}, {"short_factor", near}, {"long_factor", far}});
  }
  if (o.architecture == "granite") {
    c.emplace_back("embedding_multiplier", 3);
    c.emplace_back("residual_multiplier", double{0.7f});
    c.emplace_back("attention_multiplier", double{0.3f});
    c.emplace_back("logits_scaling", 2.5);
  }
  return c;
}

/// All pairs of tokens that make a token longer than a character, those of the first token first.
inline json_value::array merges_of_pieces(const tiny_vocabulary& words) {
  json_value::array merges;
  const auto is_token = [&](const std::string& text) {
    return std::find(words.tokens.begin(), words.tokens.end(), text) != words.tokens.end();
  };
  for (size_t id = 259; id < words.tokens.size(); ++id) {
    const auto& piece = words.tokens[id];
    for (size_t at = 1; at < piece.size(); ++at)
      if (is_token(piece.substr(0, at)) && is_token(piece.substr(at)))
        merges.push_back(json_value::array{piece.substr(0, at), piece.substr(at)});
  }
  return merges;
}

inline json_value::object make_tokenizer_json(const tiny_vocabulary& words, bool pieces) {
  json_value::object vocabulary;
  json_value::array added, merges;
  for (size_t id = 0; id < words.tokens.size(); ++id) {
    vocabulary.emplace_back(words.tokens[id], uint64_t{id});
    if (id < 3)
      added.push_back(json_value::object{
          {"id", uint64_t{id}}, {"content", words.tokens[id]}, {"special", true}});
  }
  for (const auto& merge : words.merges) merges.emplace_back(merge);
  if (pieces) merges = merges_of_pieces(words);
  const json_value::object byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  json_value::object digits{{"type", "Digits"}, {"individual_digits", true}};
  json_value pre{json_value::object{{"type", "Sequence"},
                                    {"pretokenizers", json_value::array{digits, byte_level}}}};
  if (pieces)
    pre = json_value::object{{"type", "Metaspace"},
                             {"replacement", "\u2581"},
                             {"prepend_scheme", "always"},
                             {"split", false}};
  json_value post;
  if (pieces)
    post = json_value::object{
        {"type", "TemplateProcessing"},
        {"single",
         json_value::array{json_value::object{{"SpecialToken", json_value::object{{"id", "<s>"}}}},
                           json_value::object{{"Sequence", json_value::object{{"id", "A"}}}}}}};
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", pre},
          {"post_processor", post},
          {"model", json_value::object{{"type", "BPE"},
                                       {"unk_token", pieces ? json_value{"<unk>"} : json_value{}},
                                       {"byte_fallback", pieces},
                                       {"vocab", vocabulary},
                                       {"merges", merges}}}};
}

} // namespace detail

/// The model that make_tiny_model() makes a GGUF file of: same options, same numbers, same tokens.
/// Divisors of LLaMA-3's kind are left out: a configuration does not list them.
inline hugging_face_model make_hugging_face_model(const tiny_model_options& options = {},
                                                  size_t shards = 1) {
  const auto file = make_tiny_model(options);
  const auto words = options.sentencepiece ? make_tiny_pieces() : make_tiny_vocabulary();
  hugging_face_model made;
  made.config = detail::make_config(options, words.tokens.size());
  made.tokenizer = detail::make_tokenizer_json(words, options.sentencepiece);
  made.settings = {{"bos_token", words.tokens[1]},
                   {"eos_token", json_value::object{{"content", words.tokens[2]}}},
                   {"unk_token", words.tokens[0]},
                   {"add_bos_token", options.sentencepiece},
                   {"chat_template", options.chat_template}};
  made.shards.resize(shards);
  size_t next = 0;
  for (const auto& tensor : file.tensors) {
    if (tensor.name.starts_with("rope_")) continue;
    json_value::array shape;
    for (auto size = tensor.dimensions.rbegin(); size != tensor.dimensions.rend(); ++size)
      shape.emplace_back(*size);
    auto data = tensor.data;
    const bool q = tensor.name.find(".attn_q.") != std::string::npos;
    const bool k = tensor.name.find(".attn_k.") != std::string::npos;
    if (detail::lies_in_halves(options.architecture) && (q || k))
      data =
          detail::in_halves(data, tensor.dimensions.back(), q ? options.heads : options.kv_heads);
    const auto name = detail::hub_name(tensor.name, options.architecture);
    const char* type = tensor.type == gguf_number(model::tensor_type::f32)   ? "F32"
                       : tensor.type == gguf_number(model::tensor_type::f16) ? "F16"
                                                                             : "BF16";
    made.shards[next].add(name, type, std::move(shape), data);
    made.weight_map.emplace_back(name, hugging_face_model::shard_name(next));
    next = (next + 1) % shards;
  }
  return made;
}

} // namespace lamella::tests
