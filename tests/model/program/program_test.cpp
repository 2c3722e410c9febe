#include "base/json.hpp"
#include "model/program/architectures.hpp"
#include "model/program/program.hpp"
#include "tests/model/program/definitions.hpp"
#include "tests/model/program/interpreter.hpp"
#include "tests/model/program/specs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace lamella;
using model::instruction, model::model_program, model::node_id, model::opcode;

namespace {

model_program convert(const model::model_spec& spec, model::operator_graph graph,
                      model::query_order order = model::query_order::early) {
  const auto slices = model::split(graph);
  return model::make_program(spec, std::move(graph), slices, order);
}

model_program convert(const model::model_spec& spec,
                      model::query_order order = model::query_order::early) {
  return convert(spec, model::llama_architecture().trace(spec), order);
}

/// What the node needs, itself included.
std::vector<bool> needs_of(const model::operator_graph& graph, node_id node) {
  std::vector<bool> needed(graph.nodes.size(), false);
  needed[node] = true;
  for (auto n = node + 1; n-- > 0;)
    if (needed[n])
      for (auto input : graph.nodes[n].inputs) needed[graph.tensors[input].producer] = true;
  return needed;
}

std::string listing(const model::slice_program& slice, const model_program& program) {
  std::string out;
  for (const auto& x : slice.instructions) {
    out += std::string{to_string(x.code)};
    for (auto w : x.weights) {
      const auto& name = program.graph.weights[w].name;
      const auto dot = name.find('.', 4);
      out += " " + (name.starts_with("blk.") ? name.substr(dot + 1) : name);
    }
    out += "\n";
  }
  return out;
}

/// L-M16, for one slice that ends at an attention operator.
void check_order(const model_program& program, const model::slice_program& slice) {
  const auto& graph = program.graph;
  const auto& list = slice.instructions;
  const auto& attention = graph.nodes[graph.attentions[slice.index]];
  const auto query = graph.tensors[attention.inputs[0]].producer;
  const auto needed = needs_of(graph, query);
  const auto is = [](opcode code) {
    return [code](const instruction& x) { return x.code == code; };
  };
  REQUIRE(std::count_if(list.begin(), list.end(), is(opcode::send_q)) == 1);
  REQUIRE(std::count_if(list.begin(), list.end(), is(opcode::send_kv)) == 1);
  REQUIRE(list.size() >= 2);
  CHECK(list[list.size() - 2].code == opcode::send_kv);
  CHECK(list[list.size() - 2].layer == slice.index);
  const auto send = std::find_if(list.begin(), list.end(), is(opcode::send_q));
  CHECK(send->layer == slice.index);
  // Nothing before it that Q does not need.
  for (auto x = list.begin(); x != send; ++x)
    for (auto t : x->results)
      CHECK((needed[graph.tensors[t].producer] || x->code == opcode::recv_attention
             || x->code == opcode::recv_context));
  // Nothing between Q and its sending, unless Q was ready in an earlier slice.
  for (auto x = list.begin(); x != list.end(); ++x)
    if (std::count(x->results.begin(), x->results.end(), attention.inputs[0]) > 0)
      CHECK(x + 1 == send);
  // Products of one input are one instruction, two where Q needs some of them only.
  std::map<model::tensor_id, std::vector<bool>> products; // by input: before send_q?
  for (auto x = list.begin(); x != list.end(); ++x)
    if (x->code == opcode::matmul) {
      const auto input = graph.nodes[graph.tensors[x->results[0]].producer].inputs[0];
      for (auto t : x->results) CHECK(graph.nodes[graph.tensors[t].producer].inputs[0] == input);
      auto& seen = products[input];
      CHECK(std::count(seen.begin(), seen.end(), x < send) == 0);
      seen.push_back(x < send);
    }
}

} // namespace

TEST_CASE(
    "L-M16 the first slice of LLaMA: Q alone, sent at once, then K and V together, sent last") {
  const auto program = convert(tests::smollm2_spec());
  CHECK(listing(program.slices[0], program)
        == "embed token_embd.weight\n"
           "rms_norm attn_norm.weight\n"
           "matmul attn_q.weight\n"
           "rope\n"
           "send_q\n"
           "matmul attn_k.weight attn_v.weight\n"
           "rope\n"
           "send_kv\n"
           "send_context\n");
}

TEST_CASE("L-M16 without early Q the three come of one product and are sent together") {
  const auto program = convert(tests::smollm2_spec(), model::query_order::with_kv);
  CHECK(listing(program.slices[0], program)
        == "embed token_embd.weight\n"
           "rms_norm attn_norm.weight\n"
           "matmul attn_q.weight attn_k.weight attn_v.weight\n"
           "rope\n"
           "rope\n"
           "send_q\n"
           "send_kv\n"
           "send_context\n");
}

TEST_CASE("L-M16 a middle slice of LLaMA: gate and up are one instruction") {
  const auto program = convert(tests::smollm2_spec());
  for (size_t k = 1; k < 30; ++k)
    CHECK(listing(program.slices[k], program)
          == "recv_attention\n"
             "matmul attn_output.weight\n"
             "recv_context\n"
             "add\n"
             "rms_norm ffn_norm.weight\n"
             "matmul ffn_gate.weight ffn_up.weight\n"
             "silu_mul\n"
             "matmul ffn_down.weight\n"
             "add\n"
             "rms_norm attn_norm.weight\n"
             "matmul attn_q.weight\n"
             "rope\n"
             "send_q\n"
             "matmul attn_k.weight attn_v.weight\n"
             "rope\n"
             "send_kv\n"
             "send_context\n");
}

TEST_CASE("L-M16 the last slice of LLaMA selects rows before the output head, and samples") {
  const auto program = convert(tests::smollm2_spec());
  CHECK(program.slices.size() == 31);
  CHECK(listing(program.slices[30], program)
        == "recv_attention\n"
           "matmul attn_output.weight\n"
           "recv_context\n"
           "add\n"
           "rms_norm ffn_norm.weight\n"
           "matmul ffn_gate.weight ffn_up.weight\n"
           "silu_mul\n"
           "matmul ffn_down.weight\n"
           "add\n"
           "select\n"
           "rms_norm output_norm.weight\n"
           "matmul token_embd.weight\n"
           "sample\n");
}

TEST_CASE("L-M16 a slice of Qwen2: the bias of Q before it is sent, those of K and V afterwards") {
  auto spec = tests::smollm2_spec();
  spec.biased = {"attn_q", "attn_k", "attn_v"};
  const auto program = convert(spec, model::qwen2_architecture().trace(spec));
  CHECK(listing(program.slices[0], program)
        == "embed token_embd.weight\n"
           "rms_norm attn_norm.weight\n"
           "matmul attn_q.weight\n"
           "add_bias attn_q.bias\n"
           "rope\n"
           "send_q\n"
           "matmul attn_k.weight attn_v.weight\n"
           "add_bias attn_k.bias\n"
           "add_bias attn_v.bias\n"
           "rope\n"
           "send_kv\n"
           "send_context\n");
  CHECK(program.slices.size() == spec.layers + 1);
  CHECK(tests::run_slices(program).has_value());
}

TEST_CASE("L-M16 a slice of Qwen3: queries are normalised head by head before they are sent") {
  const auto spec = tests::smollm2_spec();
  const auto program = convert(spec, model::qwen3_architecture().trace(spec));
  CHECK(listing(program.slices[0], program)
        == "embed token_embd.weight\n"
           "rms_norm attn_norm.weight\n"
           "matmul attn_q.weight\n"
           "rms_norm attn_q_norm.weight\n"
           "rope\n"
           "send_q\n"
           "matmul attn_k.weight attn_v.weight\n"
           "rms_norm attn_k_norm.weight\n"
           "rope\n"
           "send_kv\n"
           "send_context\n");
  for (const auto& x : program.slices[1].instructions)
    if (x.code == opcode::rms_norm) {
      const auto& name = program.graph.weights[x.weights[0]].name;
      CHECK(x.heads
            == (name.ends_with("attn_q_norm.weight")   ? 9
                : name.ends_with("attn_k_norm.weight") ? 3
                                                       : 1));
    }
  CHECK(program.slices.size() == spec.layers + 1);
  CHECK(tests::run_slices(program).has_value());
}

TEST_CASE("L-M16 on random definitions Q comes as early as it can and K and V last") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const auto program = convert({}, tests::random_definition(seed));
    for (const auto& slice : program.slices) {
      CAPTURE(slice.index);
      if (slice.index + 1 < program.slices.size()) check_order(program, slice);
    }
  }
}

TEST_CASE(
    "L-M13 L-M16 L-M21 slices compute what the unsplit definition does, moving between replicas") {
  for (auto spec : {tests::smollm2_spec(), tests::llama3_70b_spec()})
    CHECK(tests::run_slices(convert(spec)).has_value());
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    CHECK(tests::run_slices(convert({}, tests::random_definition(seed))).has_value());
  }
}

TEST_CASE("L-M16 every operator runs exactly once") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    const auto program = convert({}, tests::random_definition(seed));
    std::multiset<model::tensor_id> made;
    size_t samples = 0;
    for (const auto& slice : program.slices)
      for (const auto& x : slice.instructions) {
        if (x.code == opcode::recv_context) continue;
        made.insert(x.results.begin(), x.results.end());
        samples += x.code == opcode::sample ? 1 : 0;
      }
    CHECK(samples == 1);
    for (const auto& node : program.graph.nodes)
      if (node.kind != model::op_kind::sample) CHECK(made.count(node.output) == 1);
  }
}

TEST_CASE("a program of any depth needs the same few buffers") {
  auto spec = tests::smollm2_spec();
  spec.layers = 2;
  const auto shallow = convert(spec);
  spec.layers = 54;
  CHECK(convert(spec).buffer_width == shallow.buffer_width);
  CHECK(shallow.buffer_width.size() <= 12);
}

TEST_CASE("the JSON of a program is valid, complete and the same each time") {
  const auto spec = tests::smollm2_spec();
  const auto program = convert(spec);
  const auto text = to_json(program);
  CHECK(text == to_json(convert(spec)));
  CHECK(text.starts_with(R"({"version":1,)"));
  const auto parsed = parse_json(text);
  CHECK(*parsed.find("version")->get_if<int64_t>() == 1);
  const auto& slices = *parsed.find("slices")->get_if<json_value::array>();
  REQUIRE(slices.size() == 31);
  for (size_t k = 0; k < slices.size(); ++k) {
    CHECK(*slices[k].find("index")->get_if<int64_t>() == static_cast<int64_t>(k));
    const auto& list = *slices[k].find("instructions")->get_if<json_value::array>();
    REQUIRE(list.size() == program.slices[k].instructions.size());
    for (size_t i = 0; i < list.size(); ++i)
      CHECK(*list[i].find("op")->get_if<std::string>()
            == to_string(program.slices[k].instructions[i].code));
    const auto& context = *slices[k].find("context")->get_if<json_value::array>();
    REQUIRE(context.size() == (k < 30 ? 1 : 0));
    if (k < 30) CHECK(*context[0].find("bytes_per_row")->get_if<int64_t>() == 4 * 576);
  }
}

TEST_CASE("the JSON of a small program is what it always was") {
  model::tracer t;
  auto x = t.embed({"ta\"ble", 17, 8});
  auto k = t.matmul(x, {"k", 4, 8});
  auto v = t.matmul(x, {"v", 4, 8});
  auto a = t.attention(x, k, v);
  t.enter_layer(1);
  t.sample(t.add(x, a));
  model::model_spec spec;
  spec.architecture = "small";
  CHECK(
      to_json(convert(spec, t.take()))
      == R"({"version":1,"model":"small","slices":[)"
         R"({"index":0,"instructions":[{"op":"embed","layer":0,"weights":["ta\"ble"]},)"
         R"({"op":"send_q","layer":0},{"op":"matmul","layer":0,"weights":["k","v"]},)"
         R"({"op":"send_kv","layer":0},{"op":"send_context","layer":0}],"context":[{"tensor":"0.embed","bytes_per_row":32}]},)"
         R"({"index":1,"instructions":[{"op":"recv_attention","layer":0},)"
         R"({"op":"recv_context","layer":0},{"op":"add","layer":1},{"op":"sample","layer":1}],"context":[]}]})");
}

TEST_CASE("the text and the drawing of a program show each slice, its context and its links") {
  const auto program = convert(tests::smollm2_spec());
  const auto text = model::to_text(program), dot = model::to_dot(program);
  CHECK(text.starts_with("llama: 30 layers, 31 slices\n"));
  for (int k = 0; k < 31; ++k) {
    CHECK(text.find("slice " + std::to_string(k) + "\n") != std::string::npos);
    CHECK(dot.find("s" + std::to_string(k) + " [label=") != std::string::npos);
  }
  CHECK(text.find("context 7.add: 2304 bytes per row") != std::string::npos);
  CHECK(dot.find("s0 -> s1 [label=\"2304 B/row\"]") != std::string::npos);
  CHECK(std::count(dot.begin(), dot.end(), '{') == std::count(dot.begin(), dot.end(), '}'));
}
