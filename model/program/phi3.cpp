// Phi-3, Phi-3.5 and Phi-4: the layers are those of LLaMA, but Q, K and V are one tensor in files,
// and so are gate and up; the halves of a head, or of a part of it, are rotated together.
#include "model/program/architectures.hpp"
#include "model/program/decoder_spec.hpp"
#include "model/program/decoder_tracer.hpp"

namespace lamella::model {

namespace {

model_spec read_phi3(const checkpoint& file) {
  auto spec = read_decoder_spec(file);
  spec.pairing = rope_pairing::halves;
  return spec;
}

operator_graph trace_phi3(const model_spec& s, uint32_t ranks) {
  decoder_tracer t{s, ranks};
  const uint32_t q_width = s.heads * s.head_dim, kv_width = s.kv_heads * s.head_dim;
  const uint32_t all = q_width + 2 * kv_width;
  auto x = t.embed();
  for (uint32_t l = 0; l < s.layers; ++l) {
    t.enter_layer(l);
    auto h = t.norm(x, "attn_norm");
    const auto q = t.rope(t.part_of("attn_qkv", h, 0, q_width, all));
    const auto k = t.part_of("attn_qkv", h, q_width, kv_width, all);
    const auto v = t.part_of("attn_qkv", h, q_width + kv_width, kv_width, all);
    x = t.add(x, t.attend(q, t.rope(k), v));
    h = t.norm(x, "ffn_norm");
    const auto gate = t.part_of("ffn_up", h, 0, s.feed_forward, 2 * s.feed_forward);
    const auto up = t.part_of("ffn_up", h, s.feed_forward, s.feed_forward, 2 * s.feed_forward);
    x = t.add(x, t.gated(gate, up));
  }
  return t.finish(x);
}

} // namespace

const architecture& phi3_architecture() {
  static const architecture phi3{"phi3", read_phi3, trace_phi3};
  return phi3;
}

} // namespace lamella::model
