// OLMo 2: what comes out of attention and of the feed-forward part is normalised, not what goes in;
// queries and keys are, as whole rows, before they are rotated.
#include "model/files/checkpoint.hpp"
#include "model/program/architectures.hpp"
#include "model/program/decoder_spec.hpp"
#include "model/program/decoder_tracer.hpp"

#include <stdexcept>

namespace lamella::model {

namespace {

model_spec read_olmo2(const checkpoint& file) {
  auto spec = read_decoder_spec(file);
  spec.pairing = rope_pairing::halves;
  // OLMo 3 has this name, too. Its layers with windows rotate as before, the others scaled.
  if (file.u32("attention.sliding_window", 0, ~0u, 0) != 0
      && file.text("rope.scaling.type", "none") != "none")
    throw file_error{file.path(),
                     {},
                     "rope.scaling.type",
                     "layers with sliding windows would rotate otherwise than the others, which is "
                     "not supported"};
  return spec;
}

operator_graph trace_olmo2(const model_spec& s, uint32_t ranks) {
  if (ranks > 1)
    throw std::invalid_argument("queries and keys of architecture olmo2 are normalised over all "
                                "heads, so that they cannot be shared by "
                                + std::to_string(ranks) + " ranks");
  decoder_tracer t{s, ranks};
  auto x = t.embed();
  for (uint32_t l = 0; l < s.layers; ++l) {
    t.enter_layer(l);
    const auto q = t.rope(t.norm(t.queries(x), "attn_q_norm"));
    const auto k = t.norm(t.keys(x), "attn_k_norm"), v = t.values(x);
    x = t.add(x, t.norm(t.attend(q, t.rope(k), v), "post_attention_norm"));
    x = t.add(x, t.norm(t.feed_forward(x), "post_ffw_norm"));
  }
  return t.finish(x);
}

} // namespace

const architecture& olmo2_architecture() {
  static const architecture olmo2{"olmo2", read_olmo2, trace_olmo2};
  return olmo2;
}

} // namespace lamella::model
