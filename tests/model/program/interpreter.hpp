/// Runs a program on symbols: every value is the history of how it was computed.
#pragma once

#include "model/program/program.hpp"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace lamella::tests {

/// A number for each distinct history, so that equal numbers mean equal computations.
class histories {
public:
  uint32_t of(const std::string& what, const std::vector<uint32_t>& inputs) {
    std::string key = what;
    for (auto x : inputs) key += "," + std::to_string(x);
    return known_.try_emplace(key, static_cast<uint32_t>(known_.size())).first->second;
  }

private:
  std::map<std::string, uint32_t> known_;
};

inline std::string step_name(model::op_kind kind, const std::string& weight, uint32_t heads,
                             float factor) {
  return std::string{model::to_string(kind)} + ":" + weight + ":" + std::to_string(heads) + ":"
         + std::to_string(factor);
}

/// The history of every tensor, straight from the definition, unsplit.
inline std::vector<uint32_t> run_unsplit(const model::operator_graph& graph, histories& known) {
  std::vector<uint32_t> values(graph.tensors.size());
  for (const auto& node : graph.nodes) {
    std::vector<uint32_t> inputs;
    for (auto t : node.inputs) inputs.push_back(values[t]);
    const auto weight = node.weight == model::none ? "" : graph.weights[node.weight].name;
    values[node.output] = known.of(step_name(node.kind, weight, node.heads, node.factor), inputs);
  }
  return values;
}

/// Runs the slices one after another. Between two slices only the context survives, as if the batch
/// had moved to another replica. Every value is compared with that of the unsplit definition when
/// it is made and, through what is made of it, when it is read: a buffer that is given to two
/// living tensors, an operator that comes too early, or a context that lacks something all show.
/// Returns the history of what was sampled from.
inline std::optional<uint32_t> run_slices(const model::model_program& program) {
  using model::opcode;
  histories known;
  const auto expected = run_unsplit(program.graph, known);
  const auto& graph = program.graph;
  std::vector<std::optional<uint32_t>> buffers(program.buffer_width.size());
  std::vector<uint32_t> sent_q, sent_kv, sent_context;
  std::optional<uint32_t> sampled;
  const auto read = [&](model::buffer_id b) {
    if (!buffers.at(b)) throw std::logic_error("a buffer is read that nothing was written to");
    return *buffers[b];
  };
  for (const auto& slice : program.slices) {
    for (const auto& x : slice.instructions) {
      std::vector<uint32_t> inputs;
      for (auto b : x.inputs) inputs.push_back(read(b));
      REQUIRE(x.outputs.size() == x.results.size());
      if (x.code == opcode::send_q) {
        REQUIRE(inputs.size() == 1);
        sent_q = inputs;
      } else if (x.code == opcode::send_kv) {
        REQUIRE(inputs.size() == 2);
        sent_kv = inputs;
      } else if (x.code == opcode::send_context) {
        sent_context = inputs;
      } else if (x.code == opcode::sample) {
        REQUIRE(inputs.size() == 1);
        sampled = inputs[0];
        CHECK(program.buffer_selected[x.inputs[0]]);
      }
      const bool in_place = x.code == opcode::rope || x.code == opcode::silu_mul
                            || x.code == opcode::add || x.code == opcode::add_bias
                            || x.code == opcode::scale;
      for (size_t i = 0; i < x.outputs.size(); ++i) {
        const auto& node = graph.nodes[graph.tensors[x.results[i]].producer];
        const auto weight = x.weights.empty() ? "" : graph.weights[x.weights.at(i)].name;
        if (x.code == opcode::recv_attention) {
          inputs = {sent_q.at(0), sent_kv.at(0), sent_kv.at(1)};
          CHECK(node.kind == model::op_kind::attention);
        }
        if (x.code == opcode::recv_context) {
          CHECK(sent_context.at(i) == expected[x.results[i]]);
          buffers.at(x.outputs[i]) = sent_context[i];
          continue;
        }
        const auto value = known.of(step_name(node.kind, weight, x.heads, x.factor), inputs);
        CHECK(value == expected[x.results[i]]);
        CHECK(program.buffer_width[x.outputs[i]] == graph.tensors[x.results[i]].width);
        for (auto b : x.inputs) CHECK((in_place || b != x.outputs[i]));
        for (size_t j = 0; j < i; ++j) CHECK(x.outputs[j] != x.outputs[i]);
        // The buffer has the rows of what is computed.
        if (x.code == opcode::select) {
          CHECK(program.buffer_selected[x.outputs[i]]);
        } else if (!x.inputs.empty()) {
          CHECK(program.buffer_selected[x.outputs[i]] == program.buffer_selected[x.inputs[0]]);
        } else {
          CHECK_FALSE(program.buffer_selected[x.outputs[i]]);
        }
        buffers.at(x.outputs[i]) = value;
      }
    }
    for (const auto& t : slice.context) {
      CHECK(read(t.buffer) == expected[t.tensor]);
      CHECK(t.bytes_per_row == graph.tensors[t.tensor].bytes_per_row());
    }
    buffers.assign(buffers.size(), {}); // the next slice may run on another replica (L-M21)
  }
  for (const auto& node : graph.nodes)
    if (node.kind == model::op_kind::sample) CHECK(sampled == expected[node.inputs[0]]);
  return sampled;
}

} // namespace lamella::tests
