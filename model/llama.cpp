// The LLaMA family: pre-norm decoder layers with grouped-query attention, rotary positions and a
// gated feed-forward part. SmolLM2 and LLaMA-3 differ in numbers only.
#include "model/architectures.hpp"
#include "model/checkpoint.hpp"

#include <cmath>
#include <cstring>
#include <numbers>

namespace lamella::model {

namespace {

/// Upper bounds of what a file may claim; beyond them it is damaged or hostile.
constexpr uint32_t layers_max = 1024, width_max = 1u << 20, heads_max = 1024, dim_max = 1024,
                   context_max = 1u << 27;

/// LLaMA-3's long-context scaling comes as one divisor per rotated pair.
void apply_frequency_factors(const checkpoint& file, std::vector<double>& frequencies) {
  if (file.find("rope_freqs.weight") == nullptr) return;
  const auto& factors = file.tensor("rope_freqs.weight", 1, frequencies.size());
  for (size_t i = 0; i < frequencies.size(); ++i) {
    float factor = 0;
    if (factors.type != tensor_type::f32)
      throw file_error{file.path(), {}, factors.name, "must be f32"};
    std::memcpy(&factor, factors.data.data() + i * sizeof factor, sizeof factor);
    if (!(factor >= 1e-3f && factor <= 1e6f))
      throw file_error{file.path(), {}, factors.name, "factor out of range 0.001..1000000"};
    frequencies[i] /= factor;
  }
}

std::vector<double> rope_frequencies(const checkpoint& file, uint32_t head_dim) {
  const auto rotated = file.u32("rope.dimension_count", 2, head_dim, head_dim);
  if (rotated % 2 != 0)
    throw file_error{file.path(),
                     {},
                     "rope.dimension_count",
                     std::to_string(rotated) + " is odd; pairs of elements are rotated"};
  const double base = file.f32("rope.freq_base", 1.f, 1e12f, 10000.f);
  std::vector<double> frequencies(rotated / 2);
  for (size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = std::pow(base, -2.0 * static_cast<double>(i) / rotated);
  const auto scaling = file.text("rope.scaling.type", "none");
  if (scaling == "linear") {
    const double factor = file.f32("rope.scaling.factor", 1e-3f, 1e6f);
    for (auto& f : frequencies) f /= factor;
  } else if (scaling != "none" && scaling != "llama3") {
    throw file_error{file.path(),
                     {},
                     "rope.scaling.type",
                     "'" + scaling + "' is not supported; known are none, linear, llama3"};
  }
  apply_frequency_factors(file, frequencies);
  return frequencies;
}

model_spec read_llama(const checkpoint& file) {
  model_spec spec;
  spec.architecture = "llama";
  spec.layers = file.u32("block_count", 1, layers_max);
  spec.hidden = file.u32("embedding_length", 1, width_max);
  spec.feed_forward = file.u32("feed_forward_length", 1, width_max);
  spec.heads = file.u32("attention.head_count", 1, heads_max);
  spec.kv_heads = file.u32("attention.head_count_kv", 1, heads_max, spec.heads);
  if (spec.heads % spec.kv_heads != 0)
    throw file_error{file.path(),
                     {},
                     "attention.head_count_kv",
                     std::to_string(spec.kv_heads) + " does not divide the "
                         + std::to_string(spec.heads) + " query heads"};
  if (spec.hidden % spec.heads != 0 && !file.find_u64("attention.key_length"))
    throw file_error{file.path(),
                     {},
                     "embedding_length",
                     std::to_string(spec.hidden) + " is no multiple of the "
                         + std::to_string(spec.heads) + " heads"};
  spec.head_dim = file.u32("attention.key_length", 1, dim_max, spec.hidden / spec.heads);
  if (spec.head_dim > dim_max)
    throw file_error{file.path(),
                     {},
                     "attention.head_count",
                     std::to_string(spec.heads) + " heads of " + std::to_string(spec.head_dim)
                         + " elements each; at most " + std::to_string(dim_max)};
  if (file.u32("attention.value_length", 1, dim_max, spec.head_dim) != spec.head_dim)
    throw file_error{file.path(), {}, "attention.value_length", "differs from key_length"};
  if (file.u32("expert_count", 0, 1u << 16, 0) > 0)
    throw file_error{
        file.path(), {}, "expert_count", "mixture-of-experts models are not supported"};
  spec.context_tokens = file.u32("context_length", 1, context_max);
  spec.norm_epsilon = file.f32("attention.layer_norm_rms_epsilon", 1e-12f, 1.f);
  spec.pairing = rope_pairing::interleaved;
  const auto* embedding = file.find("token_embd.weight");
  if (embedding == nullptr)
    throw file_error{file.path(),
                     {},
                     "token_embd.weight",
                     "the tensor is missing; does the file carry a vocabulary only?"};
  if (embedding->rows < 1 || embedding->rows > width_max * 4)
    throw file_error{file.path(), {}, "token_embd.weight", "vocabulary out of range"};
  spec.vocabulary = static_cast<uint32_t>(embedding->rows);
  const auto listed = file.tokenizer().tokens.size();
  if (listed > spec.vocabulary)
    throw file_error{file.path(),
                     {},
                     "tokenizer.ggml.tokens",
                     std::to_string(listed) + " tokens but only " + std::to_string(spec.vocabulary)
                         + " embedding rows"};
  spec.tied_output = file.find("output.weight") == nullptr;
  spec.rope_frequencies = rope_frequencies(file, spec.head_dim);
  return spec;
}

/// Heads and the feed-forward part are split over the ranks; norms, embedding and output head are
/// whole on each of them.
operator_graph trace_llama(const model_spec& s, uint32_t ranks) {
  using enum weight_split;
  tracer t{ranks};
  const auto of_layer = [](uint32_t layer, const char* name) {
    return "blk." + std::to_string(layer) + "." + name + ".weight";
  };
  const uint32_t q_width = s.heads * s.head_dim, kv_width = s.kv_heads * s.head_dim;
  const uint32_t heads = s.heads / ranks, kv_heads = s.kv_heads / ranks;
  const weight_use embedding{"token_embd.weight", s.vocabulary, s.hidden};

  auto x = t.embed(embedding);
  for (uint32_t l = 0; l < s.layers; ++l) {
    t.enter_layer(l);
    auto h = t.rms_norm(x, of_layer(l, "attn_norm"));
    auto q = t.rope(t.matmul(h, {of_layer(l, "attn_q"), q_width, s.hidden, outputs}), heads);
    auto k = t.rope(t.matmul(h, {of_layer(l, "attn_k"), kv_width, s.hidden, outputs}), kv_heads);
    auto v = t.matmul(h, {of_layer(l, "attn_v"), kv_width, s.hidden, outputs});
    auto a = t.attention(q, k, v);
    x = t.add(x, t.matmul(a, {of_layer(l, "attn_output"), s.hidden, q_width, inputs}));
    h = t.rms_norm(x, of_layer(l, "ffn_norm"));
    auto gate = t.matmul(h, {of_layer(l, "ffn_gate"), s.feed_forward, s.hidden, outputs});
    auto up = t.matmul(h, {of_layer(l, "ffn_up"), s.feed_forward, s.hidden, outputs});
    x = t.add(x, t.matmul(t.silu_mul(gate, up),
                          {of_layer(l, "ffn_down"), s.hidden, s.feed_forward, inputs}));
  }
  auto last = t.rms_norm(t.select(x), "output_norm.weight");
  t.sample(t.matmul(last, s.tied_output ? embedding
                                        : weight_use{"output.weight", s.vocabulary, s.hidden}));
  return t.take();
}

} // namespace

const architecture& llama_architecture() {
  static const architecture llama{"llama", read_llama, trace_llama};
  return llama;
}

} // namespace lamella::model
