/// The shapes of a decoder-only transformer, and the sizes that follow from them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model {

/// Which elements of a head are rotated together.
enum class rope_pairing : uint8_t {
  interleaved, ///< (2i, 2i + 1), as in LLaMA's GGUF files
  halves,      ///< (i, i + D/2), as in Hugging Face files
};

/// What every architecture of the family has in common. Sizes in elements unless named otherwise.
struct model_spec {
  std::string architecture;
  uint32_t layers = 0;       ///< L
  uint32_t hidden = 0;       ///< d
  uint32_t feed_forward = 0; ///< width of gate and up
  uint32_t heads = 0;        ///< query heads
  uint32_t kv_heads = 0;     ///< key and value heads
  uint32_t head_dim = 0;     ///< D
  uint32_t vocabulary = 0;
  uint32_t trained_tokens = 0; ///< longest sequence the model was trained for
  /// Longest sequence in which every position may attend to all before it: where a model was
  /// trained with sliding windows, one window.
  uint32_t context_tokens = 0;
  float norm_epsilon = 1e-5f;
  rope_pairing pairing = rope_pairing::interleaved;
  std::vector<double> rope_frequencies; ///< radians per position, one per rotated pair
  float rope_magnitude = 1;             ///< of what was rotated
  bool tied_output = false;             ///< the output head is the embedding table
  std::vector<std::string> biased{};    ///< products of a layer that have a bias: "attn_q"
  float score_scale = 0;                ///< of attention; 0: what the width of a head says
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1; ///< factors of Granite

  /// G: query heads that share one kv head.
  uint32_t group() const { return heads / kv_heads; }

  /// Whose bound context_tokens is, in the words of an error: "the model was trained for".
  std::string_view context_bound() const;

  /// Score scale of attention.
  float attention_scale() const;

  /// Bytes of K and V of one token in all layers, `element_bytes` per element
  /// (2 e d L / G, Lamina table 2).
  uint64_t kv_bytes_per_token(uint32_t element_bytes) const {
    return uint64_t{2} * layers * kv_heads * head_dim * element_bytes;
  }

  /// Bytes that cross between model and attention devices for one row in one iteration:
  /// (2 + 2/G) e d L, with d = heads * head_dim (L-M05, Lamina 3.1).
  uint64_t wire_bytes_per_row(uint32_t element_bytes) const {
    return uint64_t{layers} * (2 * heads + 2 * kv_heads) * head_dim * element_bytes;
  }
};

} // namespace lamella::model
