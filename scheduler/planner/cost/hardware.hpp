/// Devices that can be bought or rented, and models that can be put on them.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::scheduler {

/// One device, as its data sheet and its seller describe it. Decimal units; 0 where unknown.
struct device {
  std::string name;
  std::string kind; ///< gpu, tpu, cpu, pim
  double flops = 0; ///< dense 16-bit operations per second
  double memory_bytes = 0;
  double bandwidth = 0;      ///< bytes per second of its memory
  double watts = 0;          ///< provisioned power
  double nic_bandwidth = 0;  ///< bytes per second of its own NIC
  double link_bandwidth = 0; ///< bytes per second to its neighbours in one machine
  double usd_per_hour = 0;
  double usd_purchase = 0;
  std::string source;
};

/// Reads a table with the columns name, kind, bf16_dense_tflops, mem_gb, mem_bw_gbs, tdp_w,
/// nic_gbps, usd_per_hr, usd_purchase, source and, if there, link_gbs. Throws table_error.
std::vector<device> read_devices(std::istream& in);

/// The table that comes with the program.
const std::vector<device>& built_in_devices();

/// The device of that name, or null. Case matters.
const device* find_device(const std::vector<device>& all, std::string_view name);

/// The shape of a model as far as costs depend on it.
struct model_shape {
  std::string name;
  double weight_bytes = 0;
  uint32_t layers = 0; ///< L
  uint32_t hidden = 0; ///< d
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  double element_bytes = 2;                              ///< e, of activations, also on the wire
  double weight_element_bytes = 2, kv_element_bytes = 2; ///< e, too, unless they are quantised
  std::string source;

  double parameters() const { return weight_bytes / weight_element_bytes; } ///< N
  /// G, query heads per KV head.
  double group() const { return static_cast<double>(heads) / kv_heads; }
  /// How often tensor parallelism over `devices` keeps the KV of a token: more devices than KV
  /// heads keep copies, as every device needs those that its query heads read.
  double kv_copies(uint32_t devices) const {
    return devices > kv_heads ? static_cast<double>(devices) / kv_heads : 1.0;
  }
  /// 2 e d L / G (Lamina table 2).
  double kv_bytes_per_token() const {
    return 2.0 * kv_element_bytes * head_dim * kv_heads * layers;
  }
  /// K and V of a token as they are sent to who keeps them and rounds them to the cache's type.
  double kv_wire_bytes_per_token() const {
    return 2.0 * element_bytes * head_dim * kv_heads * layers;
  }
  /// (2 + 2/G) e d L (L-M05, Lamina 3.1).
  double wire_bytes_per_row() const {
    return element_bytes * head_dim * (2.0 * heads + 2.0 * kv_heads) * layers;
  }
  /// The K and V projections' share of the weights of all layers.
  double kv_projection_share() const {
    return 2.0 * hidden * kv_heads * head_dim * layers / parameters();
  }
};

/// Reads a table with the columns name, weight_gb, layers, hidden, heads, kv_heads, head_dim,
/// source and, if there, weight_bits and kv_bits (16). Throws table_error.
std::vector<model_shape> read_models(std::istream& in);
const std::vector<model_shape>& built_in_models();
const model_shape* find_model(const std::vector<model_shape>& all, std::string_view name);

} // namespace lamella::scheduler
