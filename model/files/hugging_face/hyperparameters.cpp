#include "model/files/hugging_face/hyperparameters.hpp"

#include "base/json_writer.hpp"
#include "base/printable.hpp"
#include "model/files/hugging_face/json_file.hpp"
#include "model/files/hugging_face/rope_settings.hpp"

#include <array>
#include <span>

namespace lamella::model::hugging_face {

namespace {

/// Does "sliding_window" count?
enum class window : uint8_t { never, always, if_used /**< "use_sliding_window" */ };

/// What config.json calls an architecture. Further ones are further lines.
struct model_class {
  std::string_view name, architecture;
  bool interleaves;
  window windows;
};

constexpr std::array<model_class, 8> classes{{
    {"LlamaForCausalLM", "llama", true, window::never},
    {"MistralForCausalLM", "llama", true, window::always},
    {"Qwen2ForCausalLM", "qwen2", false, window::if_used},
    {"Qwen3ForCausalLM", "qwen3", false, window::if_used},
    {"SmolLM3ForCausalLM", "smollm3", true, window::if_used},
    {"GraniteForCausalLM", "granite", true, window::never},
    {"Phi3ForCausalLM", "phi3", false, window::always},
    {"Olmo2ForCausalLM", "olmo2", false, window::never},
}};

const model_class& read_class(json_object_reader& config) {
  constexpr const char* field = "architectures";
  const auto& names = json_items(config.require(field), field, {1, 1});
  const auto name = json_string(names[0], json_index(field, 0), {1, 256});
  for (const auto& x : classes)
    if (x.name == name) return x;
  std::string known;
  for (const auto& x : classes) known += (known.empty() ? "" : ", ") + std::string{x.name};
  throw refuse(json_index(field, 0),
               "'" + printable(name) + "' is not supported; known are " + known);
}

struct key_of_field {
  const char *field, *key;
  bool integer;
};

constexpr std::array<key_of_field, 9> keys{{
    {"num_hidden_layers", "block_count", true},
    {"hidden_size", "embedding_length", true},
    {"intermediate_size", "feed_forward_length", true},
    {"num_attention_heads", "attention.head_count", true},
    {"num_key_value_heads", "attention.head_count_kv", true},
    {"head_dim", "attention.key_length", true},
    {"max_position_embeddings", "context_length", true},
    {"vocab_size", "vocab_size", true},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", false},
}};

/// Factors of Granite.
constexpr std::array<key_of_field, 4> factors{{
    {"embedding_multiplier", "embedding_scale", false},
    {"residual_multiplier", "residual_scale", false},
    {"attention_multiplier", "attention.scale", false},
    {"logits_scaling", "logit_scale", false},
}};

void read_keys(json_object_reader& config, std::span<const key_of_field> fields,
               hyperparameters& out) {
  for (const auto& x : fields) {
    const auto* value = config.find(x.field);
    if (value == nullptr) continue;
    const auto path = config.path(x.field);
    out.set(x.key, path,
            x.integer ? json_value{json_as<uint64_t>(*value, path)}
                      : json_value{json_as<double>(*value, path)});
  }
}

/// A field that changes what is computed, and the one value of it that is supported; null and
/// absent are taken as that, too.
struct only_value {
  const char* field;
  json_value value;
};

const std::array<only_value, 13> only{{
    {"hidden_act", "silu"},
    {"is_encoder_decoder", false},
    {"rope_interleaved", false},
    {"use_qk_norm", false},
    {"qk_layernorm", false},
    {"use_parallel_residual", false},
    {"alibi", false},
    {"num_experts", 0},
    {"num_local_experts", 0},
    {"n_routed_experts", 0},
    {"attn_logit_softcapping", nullptr},
    {"final_logit_softcapping", nullptr},
    {"clip_qkv", nullptr},
}};

const std::array<only_value, 4> no_factors{{
    {"embedding_multiplier", 1.0},
    {"residual_multiplier", 1.0},
    {"attention_multiplier", nullptr},
    {"logits_scaling", 1.0},
}};

void refuse_others(json_object_reader& config, std::span<const only_value> fields) {
  for (const auto& [field, value] : fields) {
    const auto* found = config.find(field);
    if (found == nullptr || *found == value) continue;
    const auto* integer = found->get_if<int64_t>();
    if (integer != nullptr && json_value{static_cast<double>(*integer)} == value) continue;
    throw refuse(config.path(field), "is " + printable(to_json(*found)) + "; "
                                         + (value.is_null() ? "none" : to_json(value))
                                         + " is supported");
  }
}

void refuse_quantised(json_object_reader& config) {
  const auto* x = config.find("quantization_config");
  if (x == nullptr) return;
  const auto* method = x->find("quant_method");
  const auto* name = method != nullptr ? method->get_if<std::string>() : nullptr;
  throw refuse(config.path("quantization_config"),
               "says that weights are quantised" + (name ? " by " + printable(*name) : "")
                   + "; F32, F16 and BF16 are read, and quantised GGUF files");
}

/// A layer either attends to all before it or through the window.
void read_window(json_object_reader& config, window windows, hyperparameters& out) {
  bool used = windows == window::always
              || (windows == window::if_used
                  && config.optional<bool>("use_sliding_window").value_or(false));
  constexpr const char* types = "layer_types";
  if (const auto* listed = config.find(types)) {
    bool slides = false;
    const auto& items = json_items(*listed, types, {0, 4096});
    for (size_t i = 0; i < items.size(); ++i) {
      const auto type = json_string(items[i], json_index(types, i), {1, 64});
      if (type != "full_attention" && type != "sliding_attention")
        throw refuse(json_index(types, i),
                     "'" + printable(type)
                         + "' is not supported; known are full_attention, sliding_attention");
      slides |= type == "sliding_attention";
    }
    if (slides && !used) throw refuse(types, "has sliding_attention, but no window is used");
    used = slides;
  }
  if (!used) return;
  if (const auto x = config.optional<uint64_t>("sliding_window"))
    out.set("attention.sliding_window", config.path("sliding_window"), *x);
}

/// The architecture's own pattern is the only one: three layers that rotate, one that does not.
void check_rotating_layers(json_object_reader& config) {
  constexpr const char* field = "no_rope_layers";
  if (const auto* listed = config.find(field)) {
    const auto& items = json_items(*listed, field, {0, 4096});
    for (size_t i = 0; i < items.size(); ++i)
      if (json_as<uint32_t>(items[i], json_index(field, i), {0, 1}) != (i % 4 == 3 ? 0u : 1u))
        throw refuse(json_index(field, i),
                     "is not as in SmolLM3: every fourth layer does not rotate");
  } else if (config.optional<uint32_t>("no_rope_layer_interval").value_or(4) != 4) {
    throw refuse(config.path("no_rope_layer_interval"), "must be 4");
  }
}

std::vector<token_id> read_ids(json_object_reader& config, const char* field) {
  const auto* value = config.find(field);
  if (value == nullptr) return {};
  constexpr json_range<uint32_t> range{0, (1u << 20) - 1};
  const auto path = config.path(field);
  if (value->get_if<json_value::array>() == nullptr)
    return {json_as<uint32_t>(*value, path, range)};
  std::vector<token_id> ids;
  const auto& items = json_items(*value, path, {0, 256});
  for (size_t i = 0; i < items.size(); ++i)
    ids.push_back(json_as<uint32_t>(items[i], json_index(path, i), range));
  return ids;
}

} // namespace

hyperparameters read_hyperparameters(const json_file& file) {
  return file.read([](json_object_reader& config) {
    const auto& kind = read_class(config);
    hyperparameters out;
    out.architecture = kind.architecture;
    out.interleaves = kind.interleaves;
    read_keys(config, keys, out);
    refuse_quantised(config);
    refuse_others(config, only);
    if (kind.architecture == "granite")
      read_keys(config, factors, out);
    else
      refuse_others(config, no_factors);
    if (kind.architecture == "smollm3") check_rotating_layers(config);
    read_window(config, kind.windows, out);
    read_rope(config, out);
    out.ties_output = config.optional<bool>("tie_word_embeddings");
    const auto bos = read_ids(config, "bos_token_id");
    if (!bos.empty()) out.bos = bos.front();
    out.ends = read_ids(config, "eos_token_id");
    return out;
  });
}

std::string_view field_of_key(std::string_view key) {
  for (const auto& x : keys)
    if (x.key == key) return x.field;
  return key;
}

std::vector<token_id> read_ends(const json_file& file) {
  return file.read([](json_object_reader& config) { return read_ids(config, "eos_token_id"); });
}

} // namespace lamella::model::hugging_face
