// SmolLM3: LLaMA whose every fourth layer does not rotate queries and keys. Files do not say so; it
// is part of the architecture.
#include "model/program/architectures.hpp"
#include "model/program/decoder_spec.hpp"
#include "model/program/decoder_tracer.hpp"

namespace lamella::model {

namespace {

constexpr uint32_t rotated_layers = 3; ///< before one that is not

model_spec read_smollm3(const checkpoint& file) {
  auto spec = read_decoder_spec(file);
  spec.pairing = rope_pairing::interleaved;
  spec.biased = biased_products(
      file, {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"});
  return spec;
}

operator_graph trace_smollm3(const model_spec& s, uint32_t ranks) {
  decoder_tracer t{s, ranks};
  auto x = t.embed();
  for (uint32_t l = 0; l < s.layers; ++l) {
    t.enter_layer(l);
    const bool rotates = l % (rotated_layers + 1) != rotated_layers;
    const auto turned = [&](decoder_tracer::symbol y) { return rotates ? t.rope(y) : y; };
    const auto h = t.norm(x, "attn_norm");
    const auto q = turned(t.queries(h));
    const auto k = t.keys(h), v = t.values(h);
    x = t.add(x, t.attend(q, turned(k), v));
    x = t.add(x, t.feed_forward(t.norm(x, "ffn_norm")));
  }
  return t.finish(x);
}

} // namespace

const architecture& smollm3_architecture() {
  static const architecture smollm3{"smollm3", read_smollm3, trace_smollm3};
  return smollm3;
}

} // namespace lamella::model
