#include "scheduler/planner/papers/neo.hpp"

#include <algorithm>

namespace lamella::scheduler {

namespace {

/// Narrow steps where reading the weights and computing meet, then 2^k and 3/2 of it.
std::vector<double> sizes_up_to(double most) {
  std::vector<double> sizes{1};
  for (double x = 16; x <= 512; x += 16) sizes.push_back(x);
  for (double x = 512; x < most; x *= 2) {
    sizes.push_back(1.5 * x);
    sizes.push_back(2 * x);
  }
  return sizes;
}

template <class Time> piecewise_linear measure(const std::vector<double>& sizes, Time time) {
  std::vector<std::pair<double, double>> points;
  for (const auto x : sizes) points.emplace_back(x, time(x));
  return piecewise_linear{std::move(points)};
}

} // namespace

neo_profile profile_neo(const neo_machine& m, const cost_model& cost) {
  const auto& c = cost.values();
  const auto& model = cost.model();
  const auto sizes = sizes_up_to(2 * std::max(1.0, m.batch_tokens_max));
  const auto contexts = sizes_up_to(std::max(m.gpu_kv_tokens, m.host_kv_tokens));
  neo_profile p;
  p.linear_s = measure(
      sizes, [&](double x) { return cost.model_s(m.gpu, x) + cost.all_reduce_s(m.gpu, x); });
  p.prompt_s = measure(sizes, [&](double x) { return cost.prompt_attention_s(m.gpu, x, 0); });
  p.gpu_s = measure(contexts, [&](double x) { return cost.attention_s(m.gpu, 1, x); });
  p.host_s = measure(contexts,
                     [&](double x) { return x * model.kv_bytes_per_token() / m.host_bandwidth; });
  p.saturation = m.gpu.kind.flops * c.matmul_efficiency * model.weight_element_bytes
                 / (2 * m.gpu.kind.bandwidth * c.weight_read_efficiency);
  return p;
}

neo_machine on_numa_nodes(neo_machine machine, uint32_t nodes, uint32_t of) {
  machine.host_kv_tokens *= static_cast<double>(nodes) / of;
  machine.host_bandwidth *= static_cast<double>(nodes) / of;
  return machine;
}

} // namespace lamella::scheduler
