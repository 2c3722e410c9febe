#include "model/program/min_cut.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

namespace lamella::model {

namespace {

using traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using flow_graph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, int64_t,
        boost::property<boost::edge_residual_capacity_t, int64_t,
                        boost::property<boost::edge_reverse_t, traits::edge_descriptor>>>>;

} // namespace

cut min_cut(uint32_t vertices, std::span<const cut_edge> edges, uint32_t source, uint32_t sink) {
  flow_graph graph(vertices);
  auto capacity = get(boost::edge_capacity, graph);
  auto reverse = get(boost::edge_reverse, graph);
  for (const auto& edge : edges) {
    auto forth = add_edge(edge.from, edge.to, graph).first;
    auto back = add_edge(edge.to, edge.from, graph).first;
    capacity[forth] = static_cast<int64_t>(edge.weight);
    capacity[back] = 0;
    reverse[forth] = back;
    reverse[back] = forth;
  }
  cut result;
  result.weight = static_cast<uint64_t>(push_relabel_max_flow(graph, source, sink));

  // What the source still reaches through edges with room left is its side of the cut.
  auto residual = get(boost::edge_residual_capacity, graph);
  result.source_side.assign(vertices, false);
  std::vector<uint32_t> open{source};
  result.source_side[source] = true;
  while (!open.empty()) {
    auto v = open.back();
    open.pop_back();
    for (auto [e, end] = out_edges(v, graph); e != end; ++e) {
      auto to = static_cast<uint32_t>(target(*e, graph));
      if (residual[*e] > 0 && !result.source_side[to]) {
        result.source_side[to] = true;
        open.push_back(to);
      }
    }
  }
  return result;
}

} // namespace lamella::model
