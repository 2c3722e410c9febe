/// Complete models of a few hundred kilobytes, with random weights, for end-to-end tests.
#pragma once

#include "model/tensor.hpp"
#include "tests/gguf_writer.hpp"
#include "tests/random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::tests {

/// Shape and content of a tiny model. In quantised types `embedding`, `feed_forward` and
/// heads * head_dim must be multiples of block_elements.
struct tiny_model_options {
  std::string architecture = "llama"; ///< decides which keys and tensors there are
  uint32_t layers = 3;
  uint32_t embedding = 96;
  uint32_t heads = 6;
  uint32_t kv_heads = 3;
  uint32_t head_dim = 16;
  uint32_t feed_forward = 160;
  uint32_t context = 512;
  float rope_base = 10000;
  float rope_yarn = 0;               ///< factor by which YaRN has made the context longer
  bool rope_long = false;            ///< divisors for short and for long contexts
  uint32_t rotated = 0;              ///< elements of a head that rotate; 0: all
  bool rope_factors = false;         ///< LLaMA-3's rope scaling: a tensor rope_freqs.weight
  bool tied_embeddings = true;       ///< without: a tensor output.weight of its own
  std::vector<std::string> biased{}; ///< products with a bias; "qwen2" has those of Q, K and V
  model::tensor_type weights = model::tensor_type::f32;  ///< norms are always f32
  std::optional<model::tensor_type> embedding_weights{}; ///< of token_embd; default: `weights`
  /// The type of each matrix, by its name and the length of its rows, instead of these two.
  model::tensor_type (*type_of)(std::string_view name, uint32_t inner) = nullptr;
  bool sentencepiece = false; ///< a vocabulary of pieces with scores instead of byte pairs
  std::string pre = "smollm";
  std::string chat_template =
      "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
      "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
  uint64_t seed = 1;
};

/// A model all of whose matrices are of this type, with rows that are long enough for its blocks.
inline tiny_model_options tiny_model_of(model::tensor_type type) {
  tiny_model_options options;
  options.weights = type;
  if (model::block_elements(type) <= 32) return options;
  options.embedding = options.feed_forward = 256;
  options.heads = 8;
  options.kv_heads = 4;
  options.head_dim = 32;
  return options;
}

/// As the usual mix of 4-bit files: more bits for V, half of the down projections and the table;
/// rows that are no whole super-blocks fall back to blocks of 32; for `type_of`.
inline model::tensor_type mixed_4_bit(std::string_view name, uint32_t inner) {
  using enum model::tensor_type;
  const bool more = name.ends_with("attn_v.weight") || name == "blk.0.ffn_down.weight"
                    || name == "token_embd.weight" || name == "output.weight";
  if (inner % 256 != 0) return more ? q8_0 : q5_0;
  return more ? q6_k : q4_k;
}

/// Tokens of the tiny vocabulary: 0 <|endoftext|>, 1 <|im_start|>, 2 <|im_end|>, then the 256 bytes
/// (id 3 + byte), then the results of the merges.
struct tiny_vocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::string> merges;
  std::vector<float> scores; ///< of pieces
};

/// The character that stands for a byte in byte-level vocabularies, as UTF-8.
inline std::string byte_character(unsigned byte) {
  const auto plain = [](unsigned b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  unsigned code = byte;
  if (!plain(byte)) {
    code = 0x100;
    for (unsigned b = 0; b < byte; ++b) code += plain(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

inline tiny_vocabulary make_tiny_vocabulary() {
  tiny_vocabulary made;
  for (const char* control : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    made.tokens.emplace_back(control);
    made.types.push_back(3);
  }
  for (unsigned byte = 0; byte < 256; ++byte) made.tokens.push_back(byte_character(byte));
  const std::string space = byte_character(' ');
  const std::pair<std::string, std::string> merges[]{
      {space, "t"}, {"h", "e"},          {"i", "n"},         {"r", "e"},         {space, "a"},
      {"o", "n"},   {space + "t", "he"}, {"e", "r"},         {"a", "t"},         {space, "s"},
      {"e", "n"},   {"in", "g"},         {space + "a", "n"}, {"o", "r"},         {"l", "l"},
      {"e", "ll"},  {"ell", "o"},        {space, space},     {space + "an", "d"}};
  for (const auto& [left, right] : merges) {
    made.merges.push_back(left + " " + right);
    made.tokens.push_back(left + right);
  }
  made.types.resize(made.tokens.size(), 1);
  return made;
}

/// The same as pieces: 0 <unk>, 1 <s>, 2 </s>, the bytes, U+2581, what the merges make, letters.
inline tiny_vocabulary make_tiny_pieces() {
  const auto pairs = make_tiny_vocabulary();
  tiny_vocabulary made{{"<unk>", "<s>", "</s>"}, {2, 3, 3}, {}, {0, 0, 0}};
  for (unsigned byte = 0; byte < 256; ++byte) {
    constexpr const char* digits = "0123456789ABCDEF";
    made.tokens.push_back(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">");
    made.types.push_back(6);
    made.scores.push_back(0);
  }
  made.tokens.emplace_back("\u2581");
  const std::string space = byte_character(' ');
  for (size_t i = 259; i < pairs.tokens.size(); ++i) {
    std::string piece = pairs.tokens[i];
    for (size_t at = 0; (at = piece.find(space, at)) != std::string::npos;)
      piece.replace(at, space.size(), "\u2581");
    made.tokens.push_back(piece);
  }
  for (char letter = 'a'; letter <= 'z'; ++letter) made.tokens.emplace_back(1, letter);
  made.types.resize(made.tokens.size(), 1);
  while (made.scores.size() < made.tokens.size())
    made.scores.push_back(-static_cast<float>(made.scores.size()));
  return made;
}

/// The tensors of a tiny model, with random values, in the order of their making.
class tiny_tensors {
public:
  tiny_tensors(const tiny_model_options& options, uint32_t vocabulary, gguf_writer& out)
      : options_(options), vocabulary_(vocabulary), out_(out), random_(options.seed) {}

  void add_all() {
    const model::tensor_type table = options_.embedding_weights.value_or(options_.weights);
    // Deviation 0.3 keeps logits within a few units: neither one token always wins nor are all
    // equal.
    matrix("token_embd.weight", table, options_.embedding, vocabulary_, 0.3f);
    if (options_.rope_factors) {
      values_.resize(options_.head_dim / 2);
      for (size_t i = 0; i < values_.size(); ++i) values_[i] = i < values_.size() / 2 ? 1.f : 8.f;
      out_.add_tensor("rope_freqs.weight", model::tensor_type::f32, values_.size(), 1, values_);
    }
    if (options_.rope_long) {
      const auto pairs = (options_.rotated == 0 ? options_.head_dim : options_.rotated) / 2;
      for (const auto& [name, step] : {std::pair{"short", 0.02f}, std::pair{"long", 0.9f}}) {
        values_.resize(pairs);
        for (size_t i = 0; i < pairs; ++i) values_[i] = 1 + step * static_cast<float>(i);
        out_.add_tensor(std::string{"rope_factors_"} + name + ".weight", model::tensor_type::f32,
                        pairs, 1, values_);
      }
    }
    for (uint32_t layer = 0; layer < options_.layers; ++layer)
      add_layer("blk." + std::to_string(layer) + ".");
    norm("output_norm.weight", options_.embedding);
    if (!options_.tied_embeddings) linear("output", options_.embedding, vocabulary_);
  }

private:
  void add_layer(const std::string& prefix) {
    const uint32_t attention = options_.heads * options_.head_dim;
    const uint32_t kv = options_.kv_heads * options_.head_dim;
    const bool norms_after = options_.architecture == "olmo2";
    if (!norms_after) norm(prefix + "attn_norm.weight", options_.embedding);
    const bool fused = options_.architecture == "phi3";
    if (fused) {
      linear(prefix + "attn_qkv", options_.embedding, attention + 2 * kv);
    } else {
      linear(prefix + "attn_q", options_.embedding, attention);
      linear(prefix + "attn_k", options_.embedding, kv);
      linear(prefix + "attn_v", options_.embedding, kv);
    }
    if (options_.architecture == "qwen3" || norms_after) {
      norm(prefix + "attn_q_norm.weight", norms_after ? attention : options_.head_dim);
      norm(prefix + "attn_k_norm.weight", norms_after ? kv : options_.head_dim);
    }
    linear(prefix + "attn_output", attention, options_.embedding);
    norm(prefix + (norms_after ? "post_attention_norm.weight" : "ffn_norm.weight"),
         options_.embedding);
    if (!fused) linear(prefix + "ffn_gate", options_.embedding, options_.feed_forward);
    linear(prefix + "ffn_up", options_.embedding, (fused ? 2 : 1) * options_.feed_forward);
    linear(prefix + "ffn_down", options_.feed_forward, options_.embedding);
    if (norms_after) norm(prefix + "post_ffw_norm.weight", options_.embedding);
  }

  void norm(const std::string& name, uint32_t width) {
    values_.resize(width);
    for (float& value : values_) value = 1 + 0.1f * random_.normal();
    out_.add_tensor(name, model::tensor_type::f32, width, 1, values_);
  }

  void bias(const std::string& name, uint32_t width) {
    values_.resize(width);
    for (float& value : values_) value = 0.5f * random_.normal();
    out_.add_tensor(name, model::tensor_type::f32, width, 1, values_);
  }

  void matrix(const std::string& name, model::tensor_type type, uint32_t inner, uint32_t rows,
              float deviation) {
    values_.resize(size_t{inner} * rows);
    for (float& value : values_) value = deviation * random_.normal();
    const auto chosen = options_.type_of != nullptr ? options_.type_of(name, inner) : type;
    out_.add_tensor(name, chosen, inner, rows, values_);
  }

  /// A product, and its bias if it has one.
  void linear(const std::string& name, uint32_t inner, uint32_t rows) {
    matrix(name + ".weight", options_.weights, inner, rows,
           1 / std::sqrt(static_cast<float>(inner)));
    if (has_bias(name.substr(name.rfind('.') + 1))) bias(name + ".bias", rows);
  }

  bool has_bias(const std::string& product) const {
    const auto& biased = options_.biased;
    if (options_.architecture == "qwen2"
        && (product == "attn_q" || product == "attn_k" || product == "attn_v"))
      return true;
    return std::find(biased.begin(), biased.end(), product) != biased.end();
  }

  const tiny_model_options& options_;
  const uint32_t vocabulary_;
  gguf_writer& out_;
  splitmix random_;
  std::vector<float> values_;
};

/// The model as a writer, so that tests can break it before it is written.
inline gguf_writer make_tiny_model(const tiny_model_options& options = {}) {
  gguf_writer out;
  const tiny_vocabulary words = options.sentencepiece ? make_tiny_pieces() : make_tiny_vocabulary();
  const auto vocabulary = static_cast<uint32_t>(words.tokens.size());
  const auto key = [&](const char* name) { return options.architecture + "." + name; };
  out.set_text("general.architecture", options.architecture);
  out.set_text("general.name", "Tiny");
  out.set_u32("general.alignment", 32);
  out.set_u32(key("block_count"), options.layers);
  out.set_u32(key("context_length"), options.context);
  out.set_u32(key("embedding_length"), options.embedding);
  out.set_u32(key("feed_forward_length"), options.feed_forward);
  out.set_u32(key("attention.head_count"), options.heads);
  out.set_u32(key("attention.head_count_kv"), options.kv_heads);
  if (options.head_dim * options.heads != options.embedding) {
    out.set_u32(key("attention.key_length"), options.head_dim);
    out.set_u32(key("attention.value_length"), options.head_dim);
  }
  out.set_f32(key("attention.layer_norm_rms_epsilon"), 1e-5f);
  out.set_f32(key("rope.freq_base"), options.rope_base);
  out.set_u32(key("rope.dimension_count"),
              options.rotated == 0 ? options.head_dim : options.rotated);
  if (options.rope_yarn != 0) {
    out.set_text(key("rope.scaling.type"), "yarn");
    out.set_f32(key("rope.scaling.factor"), options.rope_yarn);
    out.set_u32(key("rope.scaling.original_context_length"), options.context / 4);
  }
  if (options.rope_long) {
    const auto original = options.context / 4;
    out.set_u32(key("rope.scaling.original_context_length"), original);
    out.set_f32(key("rope.scaling.attn_factor"),
                std::sqrt(1 + std::log(4.f) / std::log(static_cast<float>(original))));
  }
  out.set_u32(key("vocab_size"), vocabulary);
  if (options.architecture == "granite") {
    out.set_f32(key("embedding_scale"), 3);
    out.set_f32(key("residual_scale"), 0.7f);
    out.set_f32(key("attention.scale"), 0.3f);
    out.set_f32(key("logit_scale"), 2.5f);
  }
  out.set_text("tokenizer.ggml.model", options.sentencepiece ? "llama" : "gpt2");
  out.set_text("tokenizer.ggml.pre", options.pre);
  out.set_texts("tokenizer.ggml.tokens", words.tokens);
  out.set_i32s("tokenizer.ggml.token_type", words.types);
  if (options.sentencepiece)
    out.set_f32s("tokenizer.ggml.scores", words.scores);
  else
    out.set_texts("tokenizer.ggml.merges", words.merges);
  out.set_u32("tokenizer.ggml.bos_token_id", 1);
  out.set_u32("tokenizer.ggml.eos_token_id", 2);
  out.set_u32("tokenizer.ggml.unknown_token_id", 0);
  out.set_bool("tokenizer.ggml.add_bos_token", options.sentencepiece);
  out.set_text("tokenizer.chat_template", options.chat_template);

  tiny_tensors(options, vocabulary, out).add_all();
  return out;
}

/// Writes the model as a GGUF file. Same options, same bytes.
inline void write_tiny_model(const std::filesystem::path& path,
                             const tiny_model_options& options = {}) {
  make_tiny_model(options).write(path);
}

} // namespace lamella::tests
