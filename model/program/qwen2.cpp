// Qwen2 and Qwen2.5: the layers are those of LLaMA, but Q, K and V have biases, and the halves of a
// head are rotated together.
#include "model/program/architectures.hpp"
#include "model/program/decoder_spec.hpp"

namespace lamella::model {

namespace {

model_spec read_qwen2(const checkpoint& file) {
  auto spec = read_decoder_spec(file);
  spec.pairing = rope_pairing::halves;
  spec.biased = {"attn_q", "attn_k", "attn_v"};
  return spec;
}

} // namespace

const architecture& qwen2_architecture() {
  static const architecture qwen2{"qwen2", read_qwen2, llama_architecture().definition};
  return qwen2;
}

} // namespace lamella::model
