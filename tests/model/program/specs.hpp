/// Shapes of models that tests convert without their files.
#pragma once

#include "model/spec.hpp"

namespace lamella::tests {

/// SmolLM2-135M, the default model.
inline model::model_spec smollm2_spec() {
  model::model_spec s;
  s.architecture = "llama";
  s.layers = 30;
  s.hidden = 576;
  s.feed_forward = 1536;
  s.heads = 9;
  s.kv_heads = 3;
  s.head_dim = 64;
  s.vocabulary = 49152;
  s.context_tokens = 8192;
  s.tied_output = true;
  return s;
}

/// LLaMA-3-70B, where feed-forward is 3.5 times as wide as the residual.
inline model::model_spec llama3_70b_spec() {
  model::model_spec s;
  s.architecture = "llama";
  s.layers = 80;
  s.hidden = 8192;
  s.feed_forward = 28672;
  s.heads = 64;
  s.kv_heads = 8;
  s.head_dim = 128;
  s.vocabulary = 128256;
  s.context_tokens = 8192;
  return s;
}

} // namespace lamella::tests
