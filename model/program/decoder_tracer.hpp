/// The parts that definitions of decoder-only architectures are put together from.
#pragma once

#include "model/program/graph.hpp"
#include "model/spec.hpp"

#include <string>

namespace lamella::model {

/// A tracer that knows the shapes of a model and the names of its tensors in GGUF files. Each part
/// is what all architectures have; how they are put together is for the definition to say.
///
/// Over several ranks heads and the feed-forward part are split; norms, embedding and output head
/// are whole on each of them.
class decoder_tracer {
public:
  using symbol = tracer::symbol;

  /// `spec` must outlive the tracer.
  decoder_tracer(const model_spec& spec, uint32_t ranks) : spec_{spec}, trace_{ranks} {}

  symbol embed() { return trace_.embed(embedding()); }

  /// The parts that follow are of this layer.
  void enter_layer(uint32_t layer);

  /// RMS norm of whole rows, by the layer's weight of this name ("attn_norm").
  symbol norm(symbol x, const char* name);
  /// RMS norm of each head by itself, by one weight of the width of a head.
  symbol head_norm(symbol x, const char* name);
  symbol rope(symbol x) { return trace_.rope(x, heads_in(x)); }
  symbol add(symbol a, symbol b) { return trace_.add(a, b); }
  symbol scale(symbol x, float factor) { return trace_.scale(x, factor); }

  /// Projections of a layer's input, with their biases where the model has some.
  symbol queries(symbol x);
  symbol keys(symbol x);
  symbol values(symbol x);
  /// Attention and the product that leads back into the residual stream.
  symbol attend(symbol q, symbol k, symbol v);

  /// Some of the outputs of a product of the layer: those of the rows from `first` on, of all that
  /// its tensor in the file has. The ranks share these outputs.
  symbol part_of(const char* name, symbol x, uint32_t first, uint32_t outputs, uint32_t all);

  /// down(silu(gate(x)) * up(x))
  symbol feed_forward(symbol x);
  /// down(silu(gate) * up)
  symbol gated(symbol gate, symbol up);

  /// The last norm, the output head, its factor, and sampling, of the sampled rows.
  operator_graph finish(symbol x);

private:
  weight_use embedding() const { return {"token_embd.weight", spec_.vocabulary, spec_.hidden}; }
  uint32_t heads_in(symbol x) const { return trace_.width_of(x) / spec_.head_dim; }
  std::string of_layer(const char* name) const;
  /// A product of this layer and its bias.
  symbol product(symbol x, const char* name, uint32_t outputs, uint32_t inputs, weight_split split);

  const model_spec& spec_;
  tracer trace_;
  uint32_t layer_ = 0;
};

} // namespace lamella::model
