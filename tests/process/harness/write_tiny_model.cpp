/// Writes the complete tiny model of tests/tiny_model.hpp to a file, for tests of the real program.
///
/// `halves`: in the shapes and types that kernels of CUDA devices take, of so many KV heads (2).
///
/// usage: write_tiny_model FILE [CONTEXT [halves [KV_HEADS]]]
#include "tests/tiny_model.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

int main(int count, char** words) {
  if (count < 2 || count > 5 || (count >= 4 && std::string_view{words[3]} != "halves")) {
    std::fputs("usage: write_tiny_model FILE [CONTEXT [halves [KV_HEADS]]]\n", stderr);
    return 2;
  }
  lamella::tests::tiny_model_options options;
  options.context = count >= 3 ? static_cast<uint32_t>(std::strtoul(words[2], nullptr, 10)) : 2048;
  if (count >= 4) {
    options.layers = 2;
    options.embedding = 64;
    options.feed_forward = 96;
    options.head_dim = 64;
    options.kv_heads = count == 5 ? static_cast<uint32_t>(std::strtoul(words[4], nullptr, 10)) : 2;
    options.heads = 2 * options.kv_heads;
    options.weights = lamella::model::tensor_type::f16;
  }
  lamella::tests::make_tiny_model(options).write(words[1]);
  return 0;
}
