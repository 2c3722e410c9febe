#include "model/splitter.hpp"

#include "model/min_cut.hpp"

#include <stdexcept>

namespace lamella::model {

namespace {

/// The flow network of one cut. Vertices: one per node, one per tensor (so that a tensor with several
/// readers is paid for once), source and sink. Data may only flow from the source's side to the
/// sink's: every dependency also has an edge back that cannot be cut.
class cut_network {
public:
  cut_network(const operator_graph& graph, node_id attention)
    : graph_{graph},
      source_{static_cast<uint32_t>(graph.nodes.size() + graph.tensors.size())} {
    for (tensor_id t = 0; t < graph.tensors.size(); ++t) {
      const auto& tensor = graph.tensors[t];
      if (tensor.producer == attention) continue;
      edges_.push_back({tensor.producer, vertex_of(t), tensor.bytes_per_row()});
      for (auto reader : tensor.consumers) {
        if (reader == attention) continue;
        edges_.push_back({vertex_of(t), reader, uncuttable});
        edges_.push_back({reader, tensor.producer, uncuttable});
      }
    }
  }

  void put_before(node_id node) { edges_.push_back({source_, node, uncuttable}); }
  void put_after(node_id node) { edges_.push_back({node, source_ + 1, uncuttable}); }

  cut solve() const { return min_cut(source_ + 2, edges_, source_, source_ + 1); }

private:
  uint32_t vertex_of(tensor_id t) const {
    return static_cast<uint32_t>(graph_.nodes.size()) + t;
  }

  const operator_graph& graph_;
  uint32_t source_;
  std::vector<cut_edge> edges_;
};

} // namespace

model_slices split(const operator_graph& graph) {
  model_slices result;
  result.slice_of.assign(graph.nodes.size(), 0);
  std::vector<bool> before(graph.nodes.size(), false); // the source's side of the last cut

  for (uint32_t k = 0; k < graph.attentions.size(); ++k) {
    const auto attention = graph.attentions[k];
    cut_network network{graph, attention};
    for (auto input : graph.nodes[attention].inputs)
      network.put_before(graph.tensors[input].producer);
    for (auto reader : graph.tensors[graph.nodes[attention].output].consumers)
      network.put_after(reader);
    // Slices are cut one after another: what an earlier slice runs stays before every later cut.
    for (node_id n = 0; n < graph.nodes.size(); ++n)
      if (before[n]) network.put_before(n);
    const auto found = network.solve();
    if (found.weight >= uncuttable)
      throw std::logic_error("model definition: attention operator " + std::to_string(k)
                             + " cannot be cut out: its output flows into its own inputs");

    std::vector<tensor_id> context;
    for (tensor_id t = 0; t < graph.tensors.size(); ++t) {
      const auto& tensor = graph.tensors[t];
      if (tensor.producer == attention || !found.source_side[tensor.producer]) continue;
      for (auto reader : tensor.consumers)
        if (reader != attention && !found.source_side[reader]) {
          context.push_back(t);
          break;
        }
    }
    result.context.push_back(std::move(context));
    result.context_bytes.push_back(found.weight);
    for (node_id n = 0; n < graph.nodes.size(); ++n) {
      before[n] = found.source_side[n] || n == attention;
      if (!before[n]) result.slice_of[n] = k + 1;
    }
  }
  return result;
}

} // namespace lamella::model
