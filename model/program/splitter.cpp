#include "model/program/splitter.hpp"

#include "model/program/min_cut.hpp"

#include <stdexcept>

namespace lamella::model {

namespace {

/// Where a node may run, as seen from one attention operator.
enum class side : uint8_t { free, before, after };

/// What the operator needs, and what ran before earlier ones, comes before the cut; what needs it
/// comes after, and so do later attention operators, which have a slice boundary of their own to
/// wait at, with all that needs them. Little is left free: the cut is found in a small network.
std::vector<side> sides_of(const operator_graph& graph, uint32_t k, const std::vector<bool>& ran) {
  const auto attention = graph.attentions[k];
  std::vector<side> sides(graph.nodes.size(), side::free);
  for (auto later = k + 1; later < graph.attentions.size(); ++later)
    sides[graph.attentions[later]] = side::after;
  for (node_id n = 0; n < graph.nodes.size(); ++n)
    for (auto input : graph.nodes[n].inputs) {
      const auto producer = graph.tensors[input].producer;
      if (producer == attention || sides[producer] == side::after) sides[n] = side::after;
    }
  const auto put_before = [&](node_id n) {
    if (sides[n] == side::after)
      throw std::logic_error("model definition: attention operator " + std::to_string(k)
                             + " cannot be cut out: its output flows into its own inputs");
    sides[n] = side::before;
  };
  for (auto input : graph.nodes[attention].inputs) put_before(graph.tensors[input].producer);
  for (auto n = static_cast<node_id>(graph.nodes.size()); n-- > 0;) {
    if (ran[n]) put_before(n);
    if (sides[n] != side::before) continue;
    for (auto input : graph.nodes[n].inputs) put_before(graph.tensors[input].producer);
  }
  return sides;
}

/// The flow network of one cut. Vertices: source (all that comes before), sink (all that comes
/// after), one per free node, and one per tensor that may be cut, so that a tensor with several
/// readers is paid for once. Data may only flow from the source's side to the sink's: every
/// dependency also has an edge back that cannot be cut.
class cut_network {
public:
  cut_network(const operator_graph& graph, node_id attention, const std::vector<side>& sides)
      : vertex_of_(graph.nodes.size(), source) {
    for (node_id n = 0; n < graph.nodes.size(); ++n)
      if (sides[n] != side::before) vertex_of_[n] = sides[n] == side::after ? sink : vertices_++;
    vertex_of_[attention] = sink;
    for (const auto& tensor : graph.tensors) {
      const auto from = vertex_of_[tensor.producer];
      if (from == sink) continue;
      auto vertex = none;
      for (auto reader : tensor.consumers) {
        const auto to = vertex_of_[reader];
        if (reader == attention || to == source) continue;
        if (vertex == none) {
          vertex = vertices_++;
          edges_.push_back({from, vertex, tensor.bytes_per_row()});
        }
        edges_.push_back({vertex, to, uncuttable});
        if (from != source && to != sink) edges_.push_back({to, from, uncuttable});
      }
    }
  }

  void solve() { found_ = min_cut(vertices_, edges_, source, sink); }
  uint64_t weight() const { return found_.weight; }
  bool is_before(node_id n) const { return found_.source_side[vertex_of_[n]]; }

private:
  static constexpr uint32_t source = 0, sink = 1;

  uint32_t vertices_ = 2;
  std::vector<uint32_t> vertex_of_; ///< by node
  std::vector<cut_edge> edges_;
  cut found_;
};

} // namespace

model_slices split(const operator_graph& graph) {
  model_slices result;
  result.slice_of.assign(graph.nodes.size(), 0);
  // Slices are cut one after another: what an earlier slice runs stays before every later cut.
  std::vector<bool> before(graph.nodes.size(), false);

  for (uint32_t k = 0; k < graph.attentions.size(); ++k) {
    const auto attention = graph.attentions[k];
    cut_network network{graph, attention, sides_of(graph, k, before)};
    network.solve();

    std::vector<tensor_id> context;
    for (tensor_id t = 0; t < graph.tensors.size(); ++t) {
      const auto& tensor = graph.tensors[t];
      if (tensor.producer == attention || !network.is_before(tensor.producer)) continue;
      for (auto reader : tensor.consumers)
        if (reader != attention && !network.is_before(reader)) {
          context.push_back(t);
          break;
        }
    }
    result.context.push_back(std::move(context));
    result.context_bytes.push_back(network.weight());
    for (node_id n = 0; n < graph.nodes.size(); ++n) {
      before[n] = network.is_before(n) || n == attention;
      if (!before[n]) result.slice_of[n] = k + 1;
    }
  }
  return result;
}

} // namespace lamella::model
