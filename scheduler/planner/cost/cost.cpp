#include "scheduler/planner/cost/cost.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::scheduler {

double cost_model::intensity(double rows) const {
  const auto n = model_.parameters();
  return 2 * n * rows
         / (model_.weight_element_bytes * n + model_.element_bytes * 2 * rows * model_.hidden);
}

/// `weights` parameters read once and used for `rows` rows by one device.
double cost_model::matmul_s(const device& kind, double weights, double rows) const {
  const auto read =
      weights * model_.weight_element_bytes / (kind.bandwidth * c_.weight_read_efficiency);
  const auto compute = 2 * weights * rows / (kind.flops * c_.matmul_efficiency);
  const auto p = c_.roofline_sharpness;
  const auto longer = std::max(read, compute), shorter = std::min(read, compute);
  return longer * std::pow(1 + std::pow(shorter / longer, p), 1 / p);
}

double cost_model::model_s(const device_group& group, double rows) const {
  if (rows <= 0) return 0;
  const double tp = group.count;
  const auto passes = c_.elementwise_passes_whole + c_.elementwise_passes_split / tp;
  const auto elementwise = passes * rows * model_.hidden * model_.element_bytes
                           / (group.kind.bandwidth * c_.weight_read_efficiency);
  const auto gaps = (c_.matmul_kernels + c_.elementwise_kernels) * c_.kernel_gap_us * 1e-6;
  return matmul_s(group.kind, model_.parameters() / tp, rows)
         + model_.layers * (elementwise + gaps);
}

double cost_model::all_reduce_s(const device_group& group, double rows) const {
  if (group.count < 2 || rows <= 0) return 0;
  const double w = group.count;
  const auto bytes = rows * model_.hidden * model_.element_bytes;
  const auto start = (c_.all_reduce_start_us + c_.all_reduce_step_us * std::log2(w)) * 1e-6;
  const auto flow = 2 * (w - 1) / w * bytes / (group.kind.link_bandwidth * c_.link_efficiency);
  return 2 * model_.layers * (start + flow);
}

double cost_model::attention_s(const device_group& group, double rows, double context,
                               double copies) const {
  if (rows <= 0) return 0;
  const auto read = copies * context * model_.kv_bytes_per_token()
                    / (group.bandwidth() * c_.attention_efficiency);
  // Scores and weighted sums: 2 x 2 operations per head element, position and layer.
  const auto compute = 4.0 * context * model_.heads * model_.head_dim * model_.layers
                       / (group.kind.flops * group.count * c_.attention_flops_efficiency);
  return std::max(read, compute) + model_.layers * c_.kernel_gap_us * 1e-6;
}

double cost_model::prompt_attention_s(const device_group& group, double tokens,
                                      double position) const {
  return 4.0 * tokens * (position + tokens / 2) * model_.heads * model_.head_dim * model_.layers
         / (group.kind.flops * group.count * c_.attention_flops_efficiency);
}

double cost_model::prefill_s(const device_group& group, double tokens) const {
  if (tokens <= 0) return 0;
  return model_s(group, tokens) + all_reduce_s(group, tokens)
         + prompt_attention_s(group, tokens, 0);
}

double nic_of(const device& kind, const constants& c) {
  return kind.nic_bandwidth > 0 ? kind.nic_bandwidth : c.host_link_gbs * 1e9;
}

double nic_link(const device& kind, const constants& c) {
  return std::max(c.host_link_gbs * 1e9, nic_of(kind, c)); // a NIC is never faster than its slot
}

device_group with_nics(device_group group, uint32_t nics, const constants& c) {
  group.nics = nics == group.count ? 0 : nics;
  group.nic_usd_per_hour = c.nic_price_share * group.kind.usd_per_hour;
  group.nic_watts = c.nic_watts;
  return group;
}

double nic_bandwidth(const device_group& group, const constants& c) {
  const auto nics = group.nics > 0 ? group.nics : group.count;
  return std::min(nic_of(group.kind, c) * nics, nic_link(group.kind, c) * group.count);
}

network_path cost_model::path(network_kind kind, const device_group& one,
                              const device_group& other) const {
  const bool fhbn = kind == network_kind::fhbn;
  const auto efficiency = fhbn ? c_.fhbn_efficiency : c_.host_network_efficiency;
  network_path p;
  p.round_trip_s = (fhbn ? c_.fhbn_round_trip_us : c_.host_network_round_trip_us) * 1e-6;
  p.one = nic_bandwidth(one, c_) * efficiency;
  p.other = nic_bandwidth(other, c_) * efficiency;
  p.bandwidth = std::min(p.one, p.other);
  return p;
}

double cost_model::network_s(const network_path& path, double rows) const {
  if (rows <= 0) return 0;
  return model_.layers * path.round_trip_s + model_.wire_bytes_per_row() * rows / path.bandwidth;
}

double cost_model::nic_busy_s(double bandwidth, double rows) const {
  const auto to_memory =
      (model_.heads + 2.0 * model_.kv_heads) / (2.0 * model_.heads + 2.0 * model_.kv_heads);
  return model_.wire_bytes_per_row() * rows * to_memory / bandwidth;
}

double cost_model::slice_kernels_s() const {
  return model_.layers * c_.slice_kernels * c_.kernel_gap_us * 1e-6;
}

double cost_model::overlap_s(const device_group& compute, const device_group& memory,
                             const network_path& path, double rows, double context) const {
  if (rows <= 0) return 0;
  // Per iteration; every term is L equal parts, so the minimum of sums is the sum of minima.
  const auto projection = matmul_s(compute.kind, model_.parameters() / compute.count, rows)
                          * model_.kv_projection_share();
  const auto kv_bytes = rows * model_.kv_wire_bytes_per_token();
  return std::min(projection + slice_kernels_s() + kv_bytes / path.bandwidth,
                  attention_s(memory, rows, context));
}

double cost_model::streamed_s(const network_path& path, double rows, double attention_s,
                              uint32_t pieces) const {
  if (rows <= 0 || pieces < 2) return 0;
  // Of p equal pieces in two stages, p - 1 times the shorter stage is beside the longer one.
  const auto flow = model_.wire_bytes_per_row() * rows / path.bandwidth;
  return std::min(flow, attention_s) * (pieces - 1) / pieces;
}

double cost_model::bandwidth_needed(double rows, double model_s, double attention_s,
                                    double alpha) const {
  return model_.wire_bytes_per_row() * rows / (alpha * (model_s + attention_s));
}

double cost_model::bandwidth_no_slowdown(double rows, double model_s) const {
  return 4 * model_.element_bytes * model_.hidden * rows * model_.layers / model_s;
}

double cost_model::kv_tokens(const device_group& group, double weight_bytes) const {
  const auto workspace = weight_bytes > 0 ? c_.workspace_gb * 1e9 * group.count : 0;
  const auto bytes = group.memory_bytes() * c_.memory_utilization - weight_bytes - workspace;
  return std::max(0.0, std::floor(bytes / model_.kv_bytes_per_token()));
}

} // namespace lamella::scheduler
