#include "model/program/architectures.hpp"
#include "model/program/splitter.hpp"
#include "tests/model/program/definitions.hpp"
#include "tests/model/program/specs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

using namespace lamella;
using model::node_id, model::operator_graph, model::tensor_id, model::tracer;

namespace {

/// Everything that `from` reaches along data, attention operators included.
std::vector<bool> reach(const operator_graph& graph, node_id from) {
  std::vector<bool> reached(graph.nodes.size(), false);
  reached[from] = true;
  for (node_id n = from + 1; n < graph.nodes.size(); ++n)
    for (auto input : graph.nodes[n].inputs)
      if (reached[graph.tensors[input].producer]) reached[n] = true;
  return reached;
}

/// Bytes per row that cross when `before` runs first: each tensor once, the attention operator's
/// own inputs and output not at all.
uint64_t crossing(const operator_graph& graph, node_id attention, const std::vector<bool>& before) {
  uint64_t bytes = 0;
  for (const auto& tensor : graph.tensors)
    if (tensor.producer != attention && before[tensor.producer]
        && std::any_of(tensor.consumers.begin(), tensor.consumers.end(),
                       [&](auto r) { return r != attention && !before[r]; }))
      bytes += tensor.bytes_per_row();
  return bytes;
}

/// The least over all ways to put the operators that are free on either side; nothing when there
/// are more of them than can be tried.
std::optional<uint64_t> least_crossing(const operator_graph& graph, uint32_t k,
                                       const std::vector<bool>& ran) {
  const auto attention = graph.attentions[k];
  std::vector<bool> needed(graph.nodes.size(), false), free(graph.nodes.size(), true);
  for (node_id n = 0; n < graph.nodes.size(); ++n) {
    const auto from_n = reach(graph, n);
    if (n == attention || from_n[attention] || ran[n]) needed[n] = true;
    if (needed[n]) free[n] = false;
  }
  for (auto a = k; a < graph.attentions.size(); ++a) {
    const auto later = reach(graph, graph.attentions[a]);
    for (node_id n = 0; n < graph.nodes.size(); ++n)
      if (later[n]) free[n] = false;
  }
  std::vector<node_id> choices;
  for (node_id n = 0; n < graph.nodes.size(); ++n)
    if (free[n]) choices.push_back(n);
  if (choices.size() > 12) return std::nullopt;
  uint64_t least = ~uint64_t{0};
  for (uint32_t set = 0; set < 1u << choices.size(); ++set) {
    auto before = needed;
    for (size_t i = 0; i < choices.size(); ++i) before[choices[i]] = set >> i & 1;
    bool legal = true; // data flows forward only
    for (auto n : choices)
      if (before[n])
        for (auto input : graph.nodes[n].inputs)
          legal = legal && before[graph.tensors[input].producer];
    if (legal) least = std::min(least, crossing(graph, attention, before));
  }
  return least;
}

std::vector<std::string> context_names(const operator_graph& graph,
                                       const model::model_slices& slices, size_t cut) {
  std::vector<std::string> names;
  for (auto t : slices.context.at(cut)) names.push_back(graph.tensors[t].name);
  return names;
}

} // namespace

TEST_CASE("L-M13 V-M10 L attention operators give L + 1 slices: 31 for SmolLM2") {
  const auto graph = model::llama_architecture().trace(tests::smollm2_spec());
  const auto slices = model::split(graph);
  CHECK(slices.count() == 31);
  for (uint32_t k = 0; k < 30; ++k) CHECK(slices.slice_of[graph.attentions[k]] == k);
}

TEST_CASE("L-M13 V-M10 LLaMA is cut at its residual alone, the narrowest place of a layer") {
  for (const auto& spec : {tests::smollm2_spec(), tests::llama3_70b_spec()}) {
    const auto graph = model::llama_architecture().trace(spec);
    const auto slices = model::split(graph);
    for (uint32_t k = 0; k < spec.layers; ++k) {
      CAPTURE(k);
      CHECK(slices.context_bytes[k] == 4 * uint64_t{spec.hidden});
      REQUIRE(slices.context[k].size() == 1);
      const auto& tensor = graph.tensors[slices.context[k][0]];
      const auto kind = graph.nodes[tensor.producer].kind;
      CHECK(kind == (k == 0 ? model::op_kind::embed : model::op_kind::add));
    }
  }
}

TEST_CASE("L-M13 on random definitions no cut is cheaper, and data only flows forward") {
  size_t tried = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const auto graph = tests::random_definition(seed);
    const auto slices = model::split(graph);
    REQUIRE(slices.count() == graph.attentions.size() + 1);
    std::vector<bool> ran(graph.nodes.size(), false);
    for (uint32_t k = 0; k < graph.attentions.size(); ++k) {
      CAPTURE(k);
      if (const auto least = least_crossing(graph, k, ran)) {
        ++tried;
        CHECK(slices.context_bytes[k] == *least);
      }
      for (node_id n = 0; n < graph.nodes.size(); ++n) ran[n] = slices.slice_of[n] <= k;
      uint64_t bytes = 0;
      for (auto t : slices.context[k]) bytes += graph.tensors[t].bytes_per_row();
      CHECK(bytes == slices.context_bytes[k]);
      CHECK(bytes == crossing(graph, graph.attentions[k], ran));
    }
    for (node_id n = 0; n < graph.nodes.size(); ++n)
      for (auto input : graph.nodes[n].inputs) {
        const auto producer = graph.tensors[input].producer;
        const bool waits = graph.nodes[producer].kind == model::op_kind::attention;
        CHECK(slices.slice_of[producer] + (waits ? 1 : 0) <= slices.slice_of[n]);
      }
  }
  CHECK(tried > 200); // most cuts were small enough to try all ways
}

TEST_CASE("L-M13 attention beside feed-forward: the sum runs first when it is narrower to carry") {
  const auto trace = [](bool sum_first) {
    tracer t;
    auto x = t.embed({"table", 54, 8});
    auto h = t.rms_norm(x, "norm");
    auto a =
        t.attention(t.matmul(h, {"q", 8, 8}), t.matmul(h, {"k", 8, 8}), t.matmul(h, {"v", 8, 8}));
    auto ffn = t.matmul(t.silu_mul(t.matmul(h, {"gate", 30, 8}), t.matmul(h, {"up", 30, 8})),
                        {"down", 8, 30});
    auto out = t.matmul(a, {"o", 8, 8});
    x = sum_first ? t.add(t.add(x, ffn), out) : t.add(t.add(x, out), ffn);
    t.sample(t.matmul(t.select(x), {"table", 54, 8}));
    return t.take();
  };
  const auto first = trace(true);
  auto slices = model::split(first);
  CHECK(slices.context_bytes[0] == 4 * 8);
  CHECK(context_names(first, slices, 0) == std::vector<std::string>{"0.add"});
  // Added the other way round, the residual and the branch both cross; the branch is then taken
  // where it leaves the norm, since nothing wider needs to run before.
  const auto second = trace(false);
  slices = model::split(second);
  CHECK(slices.context_bytes[0] == 4 * (8 + 8));
}

TEST_CASE("L-M13 a wide side branch is cut at its waist") {
  tracer t;
  auto x = t.embed({"table", 54, 17});
  auto wide = t.matmul(x, {"widen", 1700, 17});
  auto waist = t.matmul(t.rms_norm(wide, "side_norm"), {"narrow", 3, 1700});
  auto side = t.matmul(waist, {"widen_again", 54, 3});
  auto a =
      t.attention(t.matmul(x, {"q", 6, 17}), t.matmul(x, {"k", 2, 17}), t.matmul(x, {"v", 2, 17}));
  t.sample(t.add(t.matmul(a, {"o", 54, 6}), side));
  const auto graph = t.take();
  const auto slices = model::split(graph);
  CHECK(context_names(graph, slices, 0) == std::vector<std::string>{"0.narrow"});
  CHECK(slices.context_bytes[0] == 4 * 3);
}

TEST_CASE("L-M13 two residual streams are both carried, a tensor with several readers once") {
  tracer t;
  auto left = t.embed({"left", 54, 7});
  auto right = t.embed({"right", 54, 17});
  auto a = t.attention(t.matmul(left, {"q", 4, 7}), t.matmul(right, {"k", 4, 17}),
                       t.matmul(right, {"v", 4, 17}));
  left = t.add(left, t.matmul(a, {"o", 7, 4}));
  auto one = t.matmul(right, {"one", 7, 17});
  auto two = t.matmul(right, {"two", 17, 17});
  left = t.add(left, one);
  right = t.add(t.add(right, two), t.matmul(left, {"mix", 17, 7}));
  t.sample(right);
  const auto graph = t.take();
  const auto slices = model::split(graph);
  // left + right: 24 elements. With the products run first it would be left + one + (right + two),
  // 31, and with `one` alone left + one + right.
  CHECK(slices.context_bytes[0] == 4 * (7 + 17));
  CHECK(slices.context[0].size() == 2);
}

TEST_CASE("L-M13 what needs a later attention operator never runs before an earlier one's cut") {
  // Two attention operators side by side. The second one's output, once narrowed, would be the
  // cheapest thing to carry across the first cut, but it is not there yet.
  tracer t;
  auto x = t.embed({"table", 54, 40});
  const auto attend = [&](const std::string& n) {
    return t.attention(t.matmul(x, {n + "q", 40, 40}), t.matmul(x, {n + "k", 40, 40}),
                       t.matmul(x, {n + "v", 40, 40}));
  };
  auto a = attend("a"), b = attend("b");
  auto narrow = t.matmul(b, {"narrow", 2, 40});
  t.sample(t.add(t.matmul(a, {"o", 2, 40}), narrow));
  const auto graph = t.take();
  const auto slices = model::split(graph);
  CHECK(slices.count() == 3);
  CHECK(slices.slice_of[graph.tensors[narrow.id].producer] == 2);
  CHECK(slices.slice_of[graph.attentions[1]] == 1);
}

TEST_CASE("a model without attention is one slice") {
  tracer t;
  t.sample(t.embed({"table", 54, 7}));
  const auto slices = model::split(t.take());
  CHECK(slices.count() == 1);
  CHECK(slices.slice_of == std::vector<uint32_t>{0, 0});
}
