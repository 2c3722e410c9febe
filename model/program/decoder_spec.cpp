#include "model/program/decoder_spec.hpp"

#include "model/files/checkpoint.hpp"
#include "model/program/rope_rotation.hpp"

#include <algorithm>
#include <utility>

namespace lamella::model {

namespace {

/// Upper bounds of what a file may claim; beyond them it is damaged or hostile.
constexpr uint32_t layers_max = 1024, width_max = 1u << 20, heads_max = 1024, dim_max = 1024,
                   context_max = 1u << 27;

void read_heads(const checkpoint& file, model_spec& spec) {
  const auto refuse = [&](const char* key, const std::string& why) {
    return file.error_at_key(key, why);
  };
  spec.heads = file.u32("attention.head_count", 1, heads_max);
  spec.kv_heads = file.u32("attention.head_count_kv", 1, heads_max, spec.heads);
  if (spec.heads % spec.kv_heads != 0)
    throw refuse("attention.head_count_kv", std::to_string(spec.kv_heads) + " does not divide the "
                                                + std::to_string(spec.heads) + " query heads");
  if (spec.hidden % spec.heads != 0 && !file.find_u64("attention.key_length"))
    throw refuse("embedding_length", std::to_string(spec.hidden) + " is not a multiple of the "
                                         + std::to_string(spec.heads) + " heads");
  spec.head_dim = file.u32("attention.key_length", 1, dim_max, spec.hidden / spec.heads);
  if (spec.head_dim > dim_max)
    throw refuse("attention.head_count",
                 std::to_string(spec.heads) + " heads of " + std::to_string(spec.head_dim)
                     + " elements each; at most " + std::to_string(dim_max));
  if (file.u32("attention.value_length", 1, dim_max, spec.head_dim) != spec.head_dim)
    throw refuse("attention.value_length", "differs from key_length");
}

void read_vocabulary(const checkpoint& file, model_spec& spec) {
  const auto refuse = [&](const char* field, const std::string& why) {
    return file_error{file.path(), {}, field, why};
  };
  const auto* embedding = file.find("token_embd.weight");
  if (embedding == nullptr)
    throw refuse("token_embd.weight",
                 "the tensor is missing; does the file carry a vocabulary only?");
  if (embedding->rows < 1 || embedding->rows > width_max * 4)
    throw refuse("token_embd.weight", "vocabulary out of range");
  spec.vocabulary = static_cast<uint32_t>(embedding->rows);
  const auto listed = file.tokenizer().tokens.size();
  if (listed > spec.vocabulary)
    throw refuse("tokenizer.ggml.tokens", std::to_string(listed) + " tokens but only "
                                              + std::to_string(spec.vocabulary)
                                              + " embedding rows");
  spec.tied_output = file.find("output.weight") == nullptr;
}

} // namespace

model_spec read_decoder_spec(const checkpoint& file) {
  model_spec spec;
  spec.architecture = file.architecture();
  spec.layers = file.u32("block_count", 1, layers_max);
  spec.hidden = file.u32("embedding_length", 1, width_max);
  spec.feed_forward = file.u32("feed_forward_length", 1, width_max);
  read_heads(file, spec);
  if (file.u32("expert_count", 0, 1u << 16, 0) > 0)
    throw file.error_at_key("expert_count", "mixture-of-experts models are not supported");
  spec.trained_tokens = file.u32("context_length", 1, context_max);
  // Within one window all positions attend to all before them, whichever layers have windows.
  const auto window = file.u32("attention.sliding_window", 0, context_max, 0);
  spec.context_tokens = window == 0 ? spec.trained_tokens : std::min(window, spec.trained_tokens);
  spec.norm_epsilon = file.f32("attention.layer_norm_rms_epsilon", 1e-12f, 1.f);
  read_vocabulary(file, spec);
  auto rotation = read_rope_rotation(file, spec.head_dim, spec.context_tokens);
  spec.rope_frequencies = std::move(rotation.frequencies);
  spec.rope_magnitude = rotation.magnitude;
  return spec;
}

std::vector<std::string> biased_products(const checkpoint& file,
                                         std::initializer_list<const char*> products) {
  std::vector<std::string> found;
  for (const auto* x : products)
    if (file.find("blk.0." + std::string{x} + ".bias") != nullptr) found.emplace_back(x);
  return found;
}

} // namespace lamella::model
