#include "model/program/decoder_tracer.hpp"

#include <algorithm>

namespace lamella::model {

void decoder_tracer::enter_layer(uint32_t layer) {
  layer_ = layer;
  trace_.enter_layer(layer);
}

std::string decoder_tracer::of_layer(const char* name) const {
  return "blk." + std::to_string(layer_) + "." + name;
}

decoder_tracer::symbol decoder_tracer::norm(symbol x, const char* name) {
  return trace_.rms_norm(x, of_layer(name) + ".weight");
}

decoder_tracer::symbol decoder_tracer::head_norm(symbol x, const char* name) {
  return trace_.rms_norm(x, of_layer(name) + ".weight", heads_in(x));
}

decoder_tracer::symbol decoder_tracer::product(symbol x, const char* name, uint32_t outputs,
                                               uint32_t inputs, weight_split split) {
  auto y = trace_.matmul(x, {of_layer(name) + ".weight", outputs, inputs, split});
  if (std::ranges::count(spec_.biased, name) == 0) return y;
  // The elements of a bias are shared out as the outputs are that they are added to; sums are whole
  // on each rank.
  return trace_.add_bias(
      y, {of_layer(name) + ".bias", 1, outputs,
          split == weight_split::outputs ? weight_split::inputs : weight_split::whole});
}

decoder_tracer::symbol decoder_tracer::queries(symbol x) {
  return product(x, "attn_q", spec_.heads * spec_.head_dim, spec_.hidden, weight_split::outputs);
}

decoder_tracer::symbol decoder_tracer::keys(symbol x) {
  return product(x, "attn_k", spec_.kv_heads * spec_.head_dim, spec_.hidden, weight_split::outputs);
}

decoder_tracer::symbol decoder_tracer::values(symbol x) {
  return product(x, "attn_v", spec_.kv_heads * spec_.head_dim, spec_.hidden, weight_split::outputs);
}

decoder_tracer::symbol decoder_tracer::attend(symbol q, symbol k, symbol v) {
  const auto a = trace_.attention(q, k, v);
  return product(a, "attn_output", spec_.hidden, spec_.heads * spec_.head_dim,
                 weight_split::inputs);
}

decoder_tracer::symbol decoder_tracer::feed_forward(symbol x) {
  const auto gate = product(x, "ffn_gate", spec_.feed_forward, spec_.hidden, weight_split::outputs);
  const auto up = product(x, "ffn_up", spec_.feed_forward, spec_.hidden, weight_split::outputs);
  return gated(gate, up);
}

decoder_tracer::symbol decoder_tracer::part_of(const char* name, symbol x, uint32_t first,
                                               uint32_t outputs, uint32_t all) {
  return trace_.matmul(
      x, {of_layer(name) + ".weight", outputs, spec_.hidden, weight_split::outputs, first, all});
}

decoder_tracer::symbol decoder_tracer::gated(symbol gate, symbol up) {
  return product(trace_.silu_mul(gate, up), "ffn_down", spec_.hidden, spec_.feed_forward,
                 weight_split::inputs);
}

operator_graph decoder_tracer::finish(symbol x) {
  const auto last = trace_.rms_norm(trace_.select(x), "output_norm.weight");
  const auto logits = trace_.matmul(
      last, spec_.tied_output ? embedding()
                              : weight_use{"output.weight", spec_.vocabulary, spec_.hidden});
  trace_.sample(spec_.logit_scale == 1 ? logits : trace_.scale(logits, spec_.logit_scale));
  return trace_.take();
}

} // namespace lamella::model
