// The symbolic tracer: running a definition once on symbols gives the weighted graph (L-M12).
#include "model/program/architectures.hpp"
#include "model/program/graph.hpp"
#include "tests/model/program/specs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

using namespace lamella::model;
using lamella::tests::smollm2_spec;

TEST_CASE("L-M12 a trace gives every operator, once, in the order of the definition") {
  tracer t;
  auto x = t.embed({"table", 17, 7});
  t.enter_layer(1);
  auto h = t.rms_norm(x, "norm");
  auto q = t.matmul(h, {"q", 6, 7});
  auto k = t.matmul(h, {"k", 2, 7});
  auto v = t.matmul(h, {"v", 2, 7});
  q = t.rope(q, 3);
  k = t.rope(k, 1);
  auto a = t.attention(q, k, v);
  t.sample(t.matmul(t.select(t.add(x, t.matmul(a, {"o", 7, 6}))), {"table", 17, 7}));
  const auto graph = t.take();

  std::string kinds;
  for (const auto& node : graph.nodes) kinds += std::string{to_string(node.kind)} + " ";
  CHECK(kinds
        == "embed rms_norm matmul matmul matmul rope rope attention matmul add select matmul "
           "sample ");
  CHECK(graph.attentions == std::vector<node_id>{7});
  CHECK(graph.weights.size() == 6); // table is used twice and counted once
  CHECK(graph.nodes[0].weight == graph.nodes[11].weight);
  CHECK(graph.nodes[5].heads == 3);
  CHECK(graph.nodes[0].layer == 0);
  CHECK(graph.nodes[1].layer == 1);
}

TEST_CASE("L-M12 an edge weighs four bytes for each element of a row, from shapes alone") {
  const auto spec = smollm2_spec();
  const auto graph = llama_architecture().trace(spec);
  for (const auto& node : graph.nodes) {
    if (node.kind == op_kind::sample) continue;
    const auto& out = graph.tensors[node.output];
    if (node.kind == op_kind::matmul)
      CHECK(out.bytes_per_row() == 4 * uint64_t{graph.weights[node.weight].outputs});
    else if (node.kind == op_kind::embed)
      CHECK(out.bytes_per_row() == 4 * uint64_t{spec.hidden});
    else
      CHECK(out.bytes_per_row() == graph.tensors[node.inputs[0]].bytes_per_row());
  }
}

TEST_CASE("L-M12 producers and consumers agree, and every operator comes after what it reads") {
  const auto graph = llama_architecture().trace(smollm2_spec());
  size_t uses = 0;
  for (node_id n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    if (node.output != none) CHECK(graph.tensors[node.output].producer == n);
    for (auto input : node.inputs) {
      ++uses;
      CHECK(graph.tensors[input].producer < n);
      const auto& consumers = graph.tensors[input].consumers;
      CHECK(std::count(consumers.begin(), consumers.end(), n) == 1);
    }
  }
  size_t consumers = 0;
  for (const auto& tensor : graph.tensors) consumers += tensor.consumers.size();
  CHECK(consumers == uses);
  CHECK(graph.attentions.size() == 30);
}

TEST_CASE("an operator that reads a tensor twice is one consumer") {
  tracer t;
  auto x = t.embed({"table", 17, 7});
  t.add(x, x);
  CHECK(t.take().tensors[0].consumers == std::vector<node_id>{1});
}

TEST_CASE("a definition whose shapes do not fit is refused by name") {
  tracer t;
  auto x = t.embed({"table", 17, 7});
  auto wide = t.matmul(x, {"up", 54, 7});
  CHECK_THROWS_WITH_AS(t.matmul(wide, {"down", 7, 53}),
                       "model definition: the input of down is 54 wide, expected 53",
                       std::logic_error);
  CHECK_THROWS_AS(t.add(x, wide), std::logic_error);
  CHECK_THROWS_AS(t.silu_mul(x, wide), std::logic_error);
  CHECK_THROWS_AS(t.attention(x, x, wide), std::logic_error);
  CHECK_THROWS_AS(t.attention(x, wide, wide), std::logic_error); // 7 is no multiple of 54
  CHECK_THROWS_AS(t.matmul(x, {"up", 53, 7}), std::logic_error); // a second shape
  CHECK_THROWS_WITH_AS(t.add_bias(wide, {"bias", 1, 53}),
                       "model definition: what bias is added to is 54 wide, expected 53",
                       std::logic_error);
  CHECK_THROWS_WITH_AS(t.rms_norm(wide, "norm", 4),
                       "model definition: the input of norm is 54 wide, which is not 4 heads",
                       std::logic_error);
}

TEST_CASE("a definition cannot mix the rows that are sampled with all rows") {
  tracer t;
  auto x = t.embed({"table", 17, 7});
  auto last = t.select(x);
  CHECK_THROWS_WITH_AS(t.add(last, x), "model definition: add mixes selected rows with all rows",
                       std::logic_error);
  t.add(last, t.rms_norm(last, "norm")); // both selected
}
