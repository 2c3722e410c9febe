// Tensor parallelism: what one rank of a replica runs (L-M03).
#include "model/program/load.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tiny_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <stdexcept>

using namespace lamella;
using model::opcode, model::weight_split;

namespace {

struct fixture {
  tests::scratch_folder folder;
  model::loaded_model load(const tests::tiny_model_options& options) {
    tests::write_tiny_model(folder / "tiny.gguf", options);
    return model::load_program(folder / "tiny.gguf");
  }
};

/// 4 heads on 2 KV heads, blocks of 32 along every sum for up to two ranks.
tests::tiny_model_options even() {
  tests::tiny_model_options x;
  x.heads = 4;
  x.kv_heads = 2;
  x.feed_forward = 128;
  return x;
}

std::string refusal(const model::loaded_model& model, uint32_t ranks) {
  try {
    model::rank_program(model, ranks);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}

} // namespace

TEST_CASE_FIXTURE(fixture, "L-M03 a rank adds its parts up after every product of split inputs") {
  const auto whole = load(even());
  const auto program = model::rank_program(whole, 2);
  CHECK(program->ranks() == 2);
  CHECK(program->spec.heads == whole.program->spec.heads);
  uint32_t sums = 0;
  for (const auto& slice : program->slices)
    for (size_t i = 0; i < slice.instructions.size(); ++i) {
      const auto& x = slice.instructions[i];
      const bool split = x.code == opcode::matmul
                         && program->graph.weights[x.weights[0]].split == weight_split::inputs;
      const bool sum =
          i + 1 < slice.instructions.size() && slice.instructions[i + 1].code == opcode::all_reduce;
      CHECK(split == sum);
      if (!sum) continue;
      ++sums;
      // In place: nothing else reads a part of a sum.
      CHECK(slice.instructions[i + 1].inputs == x.outputs);
      CHECK(slice.instructions[i + 1].outputs == x.outputs);
      CHECK(program->buffer_width[x.outputs[0]] == whole.program->spec.hidden);
    }
  CHECK(sums == 2 * whole.program->spec.layers); // attention output and down, per layer
}

TEST_CASE_FIXTURE(fixture, "L-M03 a rank has its share of heads and of the feed-forward part") {
  const auto whole = load(even());
  const auto program = model::rank_program(whole, 2);
  const auto& spec = program->spec;
  const auto width_of = [&](opcode code, size_t input) {
    for (const auto& slice : program->slices)
      for (const auto& x : slice.instructions)
        if (x.code == code) return program->buffer_width[x.inputs[input]];
    return 0u;
  };
  CHECK(width_of(opcode::send_q, 0) == spec.heads / 2 * spec.head_dim);
  CHECK(width_of(opcode::send_kv, 0) == spec.kv_heads / 2 * spec.head_dim);
  CHECK(width_of(opcode::send_kv, 1) == spec.kv_heads / 2 * spec.head_dim);
  CHECK(width_of(opcode::silu_mul, 0) == spec.feed_forward / 2);
  CHECK(width_of(opcode::sample, 0) == spec.vocabulary);
}

TEST_CASE_FIXTURE(fixture,
                  "L-M03 a bias is shared as the outputs it is added to, or added to whole sums") {
  auto options = even();
  options.biased = {"attn_q", "attn_v", "attn_output", "ffn_up", "ffn_down"};
  const auto program = model::rank_program(load(options), 2);
  std::map<std::string, std::pair<uint32_t, std::string>> found; // width, and what came before
  for (const auto& x : program->slices[1].instructions)
    if (x.code == opcode::add_bias) {
      const auto& bias = program->graph.weights[x.weights[0]];
      const auto& added = program->graph.nodes[program->graph.tensors[x.results[0]].producer];
      const auto from = program->graph.tensors[added.inputs[0]].producer;
      found[bias.name.substr(6)] = {bias.inputs_of_rank(2),
                                    std::string{to_string(program->graph.nodes[from].kind)}};
    }
  using entry = std::pair<uint32_t, std::string>;
  CHECK(found.size() == 5);
  CHECK(found["attn_q.bias"] == entry{4 * 16 / 2, "matmul"});
  CHECK(found["attn_v.bias"] == entry{2 * 16 / 2, "matmul"});
  CHECK(found["ffn_up.bias"] == entry{128 / 2, "matmul"});
  CHECK(found["attn_output.bias"] == entry{96, "all_reduce"});
  CHECK(found["ffn_down.bias"] == entry{96, "all_reduce"});
}

TEST_CASE_FIXTURE(fixture, "one rank's program is the program of the whole model") {
  const auto whole = load({});
  CHECK(to_json(*model::rank_program(whole, 1)) == to_json(*whole.program));
}

TEST_CASE_FIXTURE(fixture, "a degree that does not divide the model is refused with both numbers") {
  CHECK(refusal(load({}), 2) == "the model's 3 KV heads cannot be shared by 2 ranks");
  CHECK(refusal(load(even()), 3) == "the model's 4 heads cannot be shared by 3 ranks");
  auto odd = even();
  odd.feed_forward = 129;
  CHECK(refusal(load(odd), 2)
        == "the model's 129 feed-forward columns cannot be shared by 2 ranks");
  CHECK(refusal(load(even()), 2).empty());
  CHECK(refusal(load(even()), 0) == "a replica needs at least one rank");
}

TEST_CASE_FIXTURE(fixture, "norms over all heads cannot be shared, and a refusal says so") {
  auto options = even();
  options.architecture = "olmo2";
  CHECK(refusal(load(options), 1).empty());
  CHECK(refusal(load(options), 2).find("cannot be shared by 2 ranks") != std::string::npos);
}

TEST_CASE_FIXTURE(fixture, "a degree that cuts blocks of quantised weights is refused") {
  auto options = even();
  options.weights = model::tensor_type::q4_0;
  CHECK(refusal(load(options), 2).empty()); // 32 and 64 inputs for each
  options.feed_forward = 160;
  CHECK(refusal(load(options), 2)
        == "blk.0.ffn_down.weight: 80 inputs for each of 2 ranks are not whole blocks of 32");
}

TEST_CASE_FIXTURE(fixture, "super-blocks are shared whole among ranks too") {
  auto options = tests::tiny_model_of(model::tensor_type::q4_k);
  options.feed_forward = 512;
  CHECK(refusal(load(options), 2)
        == "blk.0.attn_output.weight: 128 inputs for each of 2 ranks are not whole blocks of 256");
  options.heads = 16;
  CHECK(refusal(load(options), 2).empty()); // 256 inputs for each
  options.feed_forward = 256;
  CHECK(refusal(load(options), 2)
        == "blk.0.ffn_down.weight: 128 inputs for each of 2 ranks are not whole blocks of 256");
  // In a mix every matrix has its own rule: only rows that are split count.
  options.type_of = [](std::string_view name, uint32_t) {
    return name.ends_with("ffn_down.weight") ? model::tensor_type::q8_0 : model::tensor_type::q4_k;
  };
  CHECK(refusal(load(options), 2).empty());
}
