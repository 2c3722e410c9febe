// Granite 3, its dense models: LLaMA with factors at the embedding, at what is added to the
// residual stream, at the scores of attention and at the logits.
#include "model/files/checkpoint.hpp"
#include "model/program/architectures.hpp"
#include "model/program/decoder_spec.hpp"
#include "model/program/decoder_tracer.hpp"

namespace lamella::model {

namespace {

model_spec read_granite(const checkpoint& file) {
  auto spec = read_decoder_spec(file);
  spec.pairing = rope_pairing::interleaved;
  spec.biased = biased_products(
      file, {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"});
  spec.embedding_scale = file.f32("embedding_scale", 1e-6f, 1e6f, 1.f);
  spec.residual_scale = file.f32("residual_scale", 1e-6f, 1e6f, 1.f);
  spec.score_scale = file.f32("attention.scale", 1e-6f, 1e6f, spec.attention_scale());
  spec.logit_scale = 1 / file.f32("logit_scale", 1e-6f, 1e6f, 1.f); // the file has the divisor
  return spec;
}

operator_graph trace_granite(const model_spec& s, uint32_t ranks) {
  decoder_tracer t{s, ranks};
  auto x = t.scale(t.embed(), s.embedding_scale);
  for (uint32_t l = 0; l < s.layers; ++l) {
    t.enter_layer(l);
    const auto h = t.norm(x, "attn_norm");
    const auto q = t.rope(t.queries(h));
    const auto k = t.keys(h), v = t.values(h);
    x = t.add(x, t.scale(t.attend(q, t.rope(k), v), s.residual_scale));
    x = t.add(x, t.scale(t.feed_forward(t.norm(x, "ffn_norm")), s.residual_scale));
  }
  return t.finish(x);
}

} // namespace

const architecture& granite_architecture() {
  static const architecture granite{"granite", read_granite, trace_granite};
  return granite;
}

} // namespace lamella::model
