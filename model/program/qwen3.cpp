// Qwen3, its dense models: as Qwen2, but without biases; instead the queries and keys of each head
// are normalised before they are rotated.
#include "model/program/architectures.hpp"
#include "model/program/decoder_spec.hpp"
#include "model/program/decoder_tracer.hpp"

namespace lamella::model {

namespace {

model_spec read_qwen3(const checkpoint& file) {
  auto spec = read_decoder_spec(file);
  spec.pairing = rope_pairing::halves;
  return spec;
}

operator_graph trace_qwen3(const model_spec& s, uint32_t ranks) {
  decoder_tracer t{s, ranks};
  auto x = t.embed();
  for (uint32_t l = 0; l < s.layers; ++l) {
    t.enter_layer(l);
    const auto h = t.norm(x, "attn_norm");
    const auto q = t.rope(t.head_norm(t.queries(h), "attn_q_norm"));
    const auto k = t.head_norm(t.keys(h), "attn_k_norm"), v = t.values(h);
    x = t.add(x, t.attend(q, t.rope(k), v));
    x = t.add(x, t.feed_forward(t.norm(x, "ffn_norm")));
  }
  return t.finish(x);
}

} // namespace

const architecture& qwen3_architecture() {
  static const architecture qwen3{"qwen3", read_qwen3, trace_qwen3};
  return qwen3;
}

} // namespace lamella::model
