#include "model/program/program.hpp"

#include <algorithm>
#include <array>

namespace lamella::model {

std::string_view to_string(opcode code) {
  constexpr std::array<std::string_view, 16> names{
      "embed",   "rms_norm",       "matmul",       "rope",        "silu_mul", "add",
      "select",  "sample",         "all_reduce",   "add_bias",    "scale",    "send_q",
      "send_kv", "recv_attention", "send_context", "recv_context"};
  return names[static_cast<size_t>(code)];
}

namespace {

opcode opcode_of(op_kind kind) {
  switch (kind) {
  case op_kind::embed:
    return opcode::embed;
  case op_kind::rms_norm:
    return opcode::rms_norm;
  case op_kind::matmul:
    return opcode::matmul;
  case op_kind::rope:
    return opcode::rope;
  case op_kind::silu_mul:
    return opcode::silu_mul;
  case op_kind::add:
    return opcode::add;
  case op_kind::select:
    return opcode::select;
  case op_kind::sample:
    return opcode::sample;
  case op_kind::all_reduce:
    return opcode::all_reduce;
  case op_kind::add_bias:
    return opcode::add_bias;
  case op_kind::scale:
    return opcode::scale;
  case op_kind::attention:
    break;
  }
  return opcode::recv_attention;
}

/// An instruction over tensors, before they have buffers.
struct draft {
  opcode code;
  uint32_t layer;
  uint32_t slice;
  std::vector<tensor_id> inputs, outputs;
  std::vector<weight_id> weights;
  uint32_t heads = 0;
  float factor = 1;
};

/// Puts the nodes of each slice in order (L-M16).
class drafter {
public:
  drafter(const operator_graph& graph, const model_slices& slices, query_order order)
      : graph_{graph}, slices_{slices}, order_{order}, done_(graph.nodes.size(), false) {}

  std::vector<draft> run() {
    for (uint32_t k = 0; k < slices_.count(); ++k) {
      if (k > 0) receive(k);
      if (k < graph_.attentions.size()) {
        const auto& attention = graph_.nodes[graph_.attentions[k]];
        const auto query = graph_.tensors[attention.inputs[0]].producer;
        needed_.assign(graph_.nodes.size(), false);
        mark_ancestors(query);
        emit_slice(k, /*needed_only=*/order_ == query_order::early);
        drafts_.push_back({opcode::send_q, k, k, {attention.inputs[0]}, {}, {}});
        emit_slice(k);
        drafts_.push_back(
            {opcode::send_kv, k, k, {attention.inputs[1], attention.inputs[2]}, {}, {}});
        done_[graph_.attentions[k]] = true;
      } else {
        emit_slice(k);
      }
    }
    return std::move(drafts_);
  }

private:
  void receive(uint32_t slice) {
    const auto& attention = graph_.nodes[graph_.attentions[slice - 1]];
    drafts_.push_back({opcode::recv_attention, slice - 1, slice, {}, {attention.output}, {}});
  }

  /// The slice's nodes that are left, in the order of the trace.
  void emit_slice(uint32_t slice, bool needed_only = false) {
    for (node_id n = 0; n < graph_.nodes.size(); ++n)
      if (slices_.slice_of[n] == slice && graph_.nodes[n].kind != op_kind::attention && !done_[n]
          && (!needed_only || needed_[n]))
        emit(n, slice, needed_only);
  }

  void mark_ancestors(node_id node) {
    if (done_[node] || needed_[node]) return;
    needed_[node] = true;
    for (auto input : graph_.nodes[node].inputs) mark_ancestors(graph_.tensors[input].producer);
  }

  /// Appends one node; a product takes along the slice's other products of the same input. On the
  /// way to Q only those that Q needs too: it must not wait for the rest.
  void emit(node_id node, uint32_t slice, bool needed_only) {
    const auto& x = graph_.nodes[node];
    draft d{opcode_of(x.kind), x.layer, slice, x.inputs, {}, {}, x.heads, x.factor};
    if (x.kind != op_kind::sample) d.outputs.push_back(x.output);
    if (x.weight != none) d.weights.push_back(x.weight);
    done_[node] = true;
    if (x.kind == op_kind::matmul)
      for (auto other : graph_.tensors[x.inputs[0]].consumers)
        if (!done_[other] && slices_.slice_of[other] == slice
            && graph_.nodes[other].kind == op_kind::matmul && (!needed_only || needed_[other])) {
          d.outputs.push_back(graph_.nodes[other].output);
          d.weights.push_back(graph_.nodes[other].weight);
          done_[other] = true;
        }
    drafts_.push_back(std::move(d));
  }

  const operator_graph& graph_;
  const model_slices& slices_;
  query_order order_;
  std::vector<bool> done_;
  std::vector<bool> needed_; ///< by the slice's Q
  std::vector<draft> drafts_;
};

/// Gives tensors their buffers: a buffer is free again after the last instruction that reads its
/// tensor. Element-wise operators may write where they read, if that was the last reading.
class buffer_plan {
public:
  buffer_plan(const operator_graph& graph, const std::vector<draft>& drafts)
      : graph_{graph}, last_use_(graph.tensors.size(), 0), buffer_of_(graph.tensors.size(), none),
        selected_(graph.tensors.size(), false) {
    for (uint32_t i = 0; i < drafts.size(); ++i)
      for (auto t : drafts[i].inputs) last_use_[t] = i;
  }

  /// Call once per draft, in order.
  void place(uint32_t index, const draft& d) {
    for (auto t : d.outputs) {
      selected_[t] = d.code == opcode::select;
      for (auto input : d.inputs) selected_[t] = selected_[t] || selected_[input];
    }
    const bool elementwise = d.code == opcode::rope || d.code == opcode::silu_mul
                             || d.code == opcode::add || d.code == opcode::all_reduce
                             || d.code == opcode::add_bias || d.code == opcode::scale;
    std::vector<tensor_id> ending;
    for (auto t : d.inputs)
      if (last_use_[t] == index && std::find(ending.begin(), ending.end(), t) == ending.end())
        ending.push_back(t);
    if (elementwise && !ending.empty()) {
      buffer_of_[d.outputs[0]] = buffer_of_[ending.front()];
      ending.erase(ending.begin());
    } else {
      for (auto t : d.outputs) buffer_of_[t] = take(graph_.tensors[t].width, selected_[t]);
    }
    for (auto t : ending) free_.push_back(buffer_of_[t]);
  }

  /// Whether nothing reads the draft's inputs after it.
  bool ends_inputs(uint32_t index, const draft& d) const {
    return std::all_of(d.inputs.begin(), d.inputs.end(),
                       [&](tensor_id t) { return last_use_[t] == index; });
  }

  buffer_id buffer_of(tensor_id t) const { return buffer_of_[t]; }
  const std::vector<uint32_t>& widths() const { return width_; }
  const std::vector<bool>& selected() const { return buffer_selected_; }

private:
  buffer_id take(uint32_t width, bool selected) {
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if (width_[*it] == width && buffer_selected_[*it] == selected) {
        auto id = *it;
        free_.erase(it);
        return id;
      }
    width_.push_back(width);
    buffer_selected_.push_back(selected);
    return static_cast<buffer_id>(width_.size() - 1);
  }

  const operator_graph& graph_;
  std::vector<uint32_t> last_use_;
  std::vector<buffer_id> buffer_of_;
  std::vector<bool> selected_; ///< by tensor
  std::vector<uint32_t> width_;
  std::vector<bool> buffer_selected_;
  std::vector<buffer_id> free_;
};

/// Slice k hands its context to slice k + 1, in the buffers that both know.
void hand_over_context(model_program& program, uint32_t k) {
  instruction out, in;
  out.code = opcode::send_context;
  in.code = opcode::recv_context;
  out.layer = in.layer = k;
  for (const auto& t : program.slices[k].context) {
    out.inputs.push_back(t.buffer);
    in.outputs.push_back(t.buffer);
    in.results.push_back(t.tensor);
  }
  program.slices[k].instructions.push_back(std::move(out));
  auto& next = program.slices[k + 1].instructions;
  const auto reader = std::find_if(next.begin(), next.end(), [&](const instruction& x) {
    return std::find_first_of(x.inputs.begin(), x.inputs.end(), in.outputs.begin(),
                              in.outputs.end())
           != x.inputs.end();
  });
  next.insert(reader, std::move(in));
}

} // namespace

uint64_t model_program::context_bytes_per_row() const {
  uint64_t most = 0;
  for (const auto& slice : slices) {
    uint64_t bytes = 0;
    for (const auto& t : slice.context) bytes += t.bytes_per_row;
    most = std::max(most, bytes);
  }
  return most;
}

model_program make_program(const model_spec& spec, operator_graph graph, const model_slices& slices,
                           query_order order) {
  model_program result{spec, std::move(graph), {}, {}, {}};
  const auto drafts = drafter{result.graph, slices, order}.run();
  buffer_plan plan{result.graph, drafts};
  for (uint32_t k = 0; k < slices.count(); ++k) result.slices.push_back({k, {}, {}});
  for (uint32_t i = 0; i < drafts.size(); ++i) {
    const auto& d = drafts[i];
    instruction x{
        d.code, d.layer, {}, {}, d.weights, d.heads, d.factor, d.outputs, plan.ends_inputs(i, d)};
    for (auto t : d.inputs) x.inputs.push_back(plan.buffer_of(t));
    plan.place(i, d);
    for (auto t : d.outputs) x.outputs.push_back(plan.buffer_of(t));
    result.slices[d.slice].instructions.push_back(std::move(x));
  }
  for (uint32_t k = 0; k + 1 < slices.count(); ++k)
    for (auto t : slices.context[k])
      result.slices[k].context.push_back(
          {t, plan.buffer_of(t), result.graph.tensors[t].bytes_per_row()});
  for (uint32_t k = 0; k + 1 < slices.count(); ++k) hand_over_context(result, k);
  result.buffer_width = plan.widths();
  result.buffer_selected = plan.selected();
  return result;
}

} // namespace lamella::model
