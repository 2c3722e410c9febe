#include "model/files/hugging_face/tensor_names.hpp"

#include <array>
#include <utility>

namespace lamella::model::hugging_face {

namespace {

using name_pair = std::pair<std::string_view, std::string_view>; ///< Hugging Face's and GGUF's

constexpr std::array<name_pair, 3> whole{{
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
}};

/// Parts of layers. The first pair of a name counts.
constexpr std::array<name_pair, 14> parts{{
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
}};

constexpr std::string_view layers = "model.layers.", blocks = "blk.";

/// In OLMo 2 a norm of this name is behind attention, and not before what follows it.
constexpr name_pair after_attention{"post_attention_layernorm", "post_attention_norm"};

std::string_view gguf_part(std::string_view part, std::string_view architecture) {
  if (architecture == "olmo2" && part == after_attention.first) return after_attention.second;
  for (const auto& [theirs, ours] : parts)
    if (theirs == part) return ours;
  return {};
}

std::string_view hugging_face_part(std::string_view part, std::string_view architecture) {
  if (part == after_attention.second) return after_attention.first;
  if (architecture == "phi3" && part == "ffn_up") return "mlp.gate_up_proj";
  for (const auto& [theirs, ours] : parts)
    if (ours == part) return theirs;
  return {};
}

/// "0", "self_attn.q_proj" and ".weight" of what follows the prefix; all empty if it is no such
/// name.
struct layer_name {
  std::string_view layer, part, ending;
};

layer_name split(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  const auto first = name.find('.'), last = name.rfind('.');
  if (first == std::string_view::npos || first == last) return {};
  return {name.substr(0, first), name.substr(first + 1, last - first - 1), name.substr(last)};
}

std::string joined(std::string_view prefix, const layer_name& x, std::string_view part) {
  return std::string{prefix}.append(x.layer).append(".").append(part).append(x.ending);
}

} // namespace

std::string gguf_name(std::string_view name, std::string_view architecture) {
  for (const auto& [theirs, ours] : whole)
    if (theirs == name) return std::string{ours};
  // Old files have the frequencies of rotations, which follow from the configuration.
  if (name.ends_with("rotary_emb.inv_freq")) return {};
  const auto x = split(name, layers);
  const auto part = gguf_part(x.part, architecture);
  return part.empty() ? std::string{name} : joined(blocks, x, part);
}

std::string hugging_face_name(std::string_view name, std::string_view architecture) {
  for (const auto& [theirs, ours] : whole)
    if (ours == name) return std::string{theirs};
  const auto x = split(name, blocks);
  const auto part = hugging_face_part(x.part, architecture);
  return part.empty() ? std::string{name} : joined(layers, x, part);
}

std::string_view part_of_layer(std::string_view name) { return split(name, blocks).part; }

} // namespace lamella::model::hugging_face
