/// Tiny random models of the architectures that are compared with an oracle (families_golden.py),
/// and the text that they are given.
#pragma once

#include "tests/tiny_model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::tests {

struct family {
  std::string name;
  tiny_model_options options;
};

/// Heads are wider than embedding / heads where the architecture lets a file say so.
inline std::vector<family> families() {
  std::vector<family> all;
  const auto add = [&](const char* name, const char* architecture) -> tiny_model_options& {
    all.push_back({name, {}});
    auto& options = all.back().options;
    options.architecture = architecture;
    options.seed = 10 + all.size();
    return options;
  };
  add("llama_biased", "llama").biased = {"attn_q",   "attn_k", "attn_v",  "attn_output",
                                         "ffn_gate", "ffn_up", "ffn_down"};
  add("qwen2", "qwen2").rope_base = 1e6f;
  auto& qwen3 = add("qwen3", "qwen3");
  qwen3.head_dim = 32;
  qwen3.tied_embeddings = false;
  qwen3.rope_base = 1e6f;
  auto& smollm3 = add("smollm3", "smollm3");
  smollm3.layers = 5; // the fourth does not rotate
  smollm3.rope_base = 5e6f;
  add("granite", "granite");
  auto& olmo2 = add("olmo2", "olmo2");
  olmo2.tied_embeddings = false;
  olmo2.rope_base = 5e5f;
  auto& yarn = add("qwen2_yarn", "qwen2");
  yarn.rope_base = 1e6f;
  yarn.rope_yarn = 4;
  auto& phi3 = add("phi3", "phi3");
  phi3.head_dim = 32;
  phi3.heads = 3;
  phi3.kv_heads = 1;
  phi3.tied_embeddings = false;
  auto& phi3_long = add("phi3_long", "phi3");
  phi3_long.rope_long = true;
  phi3_long.rotated = 12;
  return all;
}

/// More than one chunk of attention (256 positions).
inline std::vector<uint32_t> family_tokens(uint32_t vocabulary) {
  splitmix random(7);
  std::vector<uint32_t> tokens(300);
  for (auto& token : tokens) token = static_cast<uint32_t>(random.below(vocabulary));
  return tokens;
}

} // namespace lamella::tests
