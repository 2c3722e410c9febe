#include "model/program/graph.hpp"

#include <array>
#include <stdexcept>

namespace lamella::model {

std::string_view to_string(op_kind kind) {
  constexpr std::array<std::string_view, 12> names{"embed",     "rms_norm",   "matmul",   "rope",
                                                   "attention", "silu_mul",   "add",      "select",
                                                   "sample",    "all_reduce", "add_bias", "scale"};
  return names[static_cast<size_t>(kind)];
}

std::string label(const weight_use& weight) {
  if (weight.rows_in_file == 0) return weight.name;
  return weight.name + "[" + std::to_string(weight.first_row) + ":"
         + std::to_string(weight.first_row + weight.outputs) + "]";
}

namespace {

void require_width(uint32_t actual, uint32_t expected, const std::string& what) {
  if (actual != expected)
    throw std::logic_error("model definition: " + what + " is " + std::to_string(actual)
                           + " wide, expected " + std::to_string(expected));
}

} // namespace

weight_id tracer::use(const weight_use& weight) {
  const auto [place, fresh] = weight_of_.try_emplace({weight.name, weight.first_row},
                                                     static_cast<weight_id>(graph_.weights.size()));
  if (fresh) {
    graph_.weights.push_back(weight);
  } else {
    const auto& known = graph_.weights[place->second];
    if (known.outputs != weight.outputs || known.inputs != weight.inputs
        || known.split != weight.split || known.rows_in_file != weight.rows_in_file)
      throw std::logic_error("model definition: " + weight.name + " is used with two shapes");
  }
  return place->second;
}

tracer::symbol tracer::append(op_kind kind, std::vector<tensor_id> inputs, uint32_t width,
                              std::string name, weight_id weight, uint32_t heads) {
  const auto node = static_cast<node_id>(graph_.nodes.size());
  const auto output = static_cast<tensor_id>(graph_.tensors.size());
  bool selected = kind == op_kind::select;
  for (auto input : inputs) {
    if (kind != op_kind::select && selected_[input] != selected_[inputs[0]])
      throw std::logic_error("model definition: " + std::string{to_string(kind)}
                             + " mixes selected rows with all rows");
    selected = selected || selected_[input];
    auto& consumers = graph_.tensors[input].consumers;
    if (consumers.empty() || consumers.back() != node) consumers.push_back(node);
  }
  graph_.nodes.push_back({kind, std::move(inputs), output, weight, heads, 1, layer_});
  graph_.tensors.push_back({std::to_string(layer_) + "." + std::move(name), width, node, {}});
  selected_.push_back(selected);
  return {output};
}

tracer::symbol tracer::embed(const weight_use& table) {
  return append(op_kind::embed, {}, table.inputs, "embed", use(table));
}

tracer::symbol tracer::rms_norm(symbol x, const std::string& weight, uint32_t heads) {
  if (heads == 0 || width_of(x) % heads != 0)
    throw std::logic_error("model definition: the input of " + weight + " is "
                           + std::to_string(width_of(x)) + " wide, which is not "
                           + std::to_string(heads) + " heads");
  return append(op_kind::rms_norm, {x.id}, width_of(x), "norm",
                use({weight, 1, width_of(x) / heads}), heads);
}

tracer::symbol tracer::matmul(symbol x, const weight_use& weight) {
  const auto width = weight.outputs_of_rank(ranks());
  require_width(width_of(x), weight.inputs_of_rank(ranks()), "the input of " + weight.name);
  const auto y = append(op_kind::matmul, {x.id}, width, weight.name, use(weight));
  if (ranks() == 1 || weight.split != weight_split::inputs) return y;
  return append(op_kind::all_reduce, {y.id}, width, weight.name + " over ranks");
}

tracer::symbol tracer::add_bias(symbol x, const weight_use& bias) {
  require_width(width_of(x), bias.inputs_of_rank(ranks()), "what " + bias.name + " is added to");
  return append(op_kind::add_bias, {x.id}, width_of(x), bias.name, use(bias));
}

tracer::symbol tracer::scale(symbol x, float factor) {
  const auto y = append(op_kind::scale, {x.id}, width_of(x), "scale");
  graph_.nodes.back().factor = factor;
  return y;
}

tracer::symbol tracer::rope(symbol x, uint32_t heads) {
  return append(op_kind::rope, {x.id}, width_of(x), "rope", none, heads);
}

tracer::symbol tracer::attention(symbol q, symbol k, symbol v) {
  require_width(width_of(v), width_of(k), "v");
  if (width_of(k) == 0 || width_of(q) % width_of(k) != 0)
    throw std::logic_error("model definition: q is " + std::to_string(width_of(q))
                           + " wide, no multiple of k, which is " + std::to_string(width_of(k)));
  graph_.attentions.push_back(static_cast<node_id>(graph_.nodes.size()));
  return append(op_kind::attention, {q.id, k.id, v.id}, width_of(q), "attention");
}

tracer::symbol tracer::silu_mul(symbol gate, symbol up) {
  require_width(width_of(up), width_of(gate), "up");
  return append(op_kind::silu_mul, {gate.id, up.id}, width_of(gate), "silu_mul");
}

tracer::symbol tracer::add(symbol a, symbol b) {
  require_width(width_of(b), width_of(a), "the second addend");
  return append(op_kind::add, {a.id, b.id}, width_of(a), "add");
}

tracer::symbol tracer::select(symbol x) {
  return append(op_kind::select, {x.id}, width_of(x), "select");
}

void tracer::sample(symbol logits) { append(op_kind::sample, {logits.id}, 0, "sample"); }

} // namespace lamella::model
