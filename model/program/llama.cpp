// The LLaMA family: pre-norm decoder layers with grouped-query attention, rotary positions and a
// gated feed-forward part. SmolLM2, LLaMA-3 and Mistral differ in numbers only; some of their
// descendants have biases.
#include "model/program/architectures.hpp"
#include "model/program/decoder_spec.hpp"
#include "model/program/decoder_tracer.hpp"

namespace lamella::model {

namespace {

model_spec read_llama(const checkpoint& file) {
  auto spec = read_decoder_spec(file);
  spec.pairing = rope_pairing::interleaved;
  spec.biased = biased_products(
      file, {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"});
  return spec;
}

operator_graph trace_llama(const model_spec& s, uint32_t ranks) {
  decoder_tracer t{s, ranks};
  auto x = t.embed();
  for (uint32_t l = 0; l < s.layers; ++l) {
    t.enter_layer(l);
    const auto h = t.norm(x, "attn_norm");
    const auto q = t.rope(t.queries(h));
    const auto k = t.keys(h), v = t.values(h);
    x = t.add(x, t.attend(q, t.rope(k), v));
    x = t.add(x, t.feed_forward(t.norm(x, "ffn_norm")));
  }
  return t.finish(x);
}

} // namespace

const architecture& llama_architecture() {
  static const architecture llama{"llama", read_llama, trace_llama};
  return llama;
}

} // namespace lamella::model
