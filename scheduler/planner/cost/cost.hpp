/// What an iteration costs on given devices: rooflines, all-reduce, network, host.
///
/// In formulas: N parameters, d hidden size, L layers, e bytes per element, G query heads per KV
/// head, B rows of an iteration, T tokens of context of all rows together. Seconds and bytes.
#pragma once

#include "scheduler/planner/cost/constants.hpp"
#include "scheduler/planner/cost/hardware.hpp"

#include <cstdint>

namespace lamella::scheduler {

/// Several devices of a kind that work as one.
struct device_group {
  device kind;
  uint32_t count = 0;
  uint32_t nics = 0;           ///< of all of them together; 0: one each, as in the table of devices
  double nic_usd_per_hour = 0; ///< of one NIC with its share of the switch
  double nic_watts = 0;

  /// NICs beyond those that the table's prices have in them; fewer than none where devices share.
  double more_nics() const { return nics == 0 ? 0.0 : double(nics) - double(count); }
  double memory_bytes() const { return kind.memory_bytes * count; }
  double bandwidth() const { return kind.bandwidth * count; }
  double usd_per_hour() const { return kind.usd_per_hour * count + more_nics() * nic_usd_per_hour; }
  double watts() const { return kind.watts * count + more_nics() * nic_watts; }
};

/// The group with `nics` NICs, at the prices of `c` (L-M06).
device_group with_nics(device_group group, uint32_t nics, const constants& c);

/// Bytes per second that a device's link to its NICs takes, however many they are.
double nic_link(const device& kind, const constants& c);

/// Bytes per second of all NICs of the group; several NICs of a device share its link.
double nic_bandwidth(const device_group& group, const constants& c);

/// How two pools are connected: by the host (NCCL) or by devices that post their own sends (L-M07).
enum class network_kind : uint8_t { fhbn, host };

/// A connection of two pools: time of a round trip without payload, and of its bytes.
struct network_path {
  double round_trip_s = 0;
  double bandwidth = 0;      ///< bytes per second, of the weaker side's NICs together (L-M06)
  double one = 0, other = 0; ///< the same of either side
};

/// What happens on the host between two iterations of a batch.
struct host_overhead {
  double iteration_s = 0; ///< whatever the batch
  double request_s = 0;   ///< per row
  double of(double rows) const { return rows > 0 ? iteration_s + request_s * rows : 0; }
};

class cost_model {
public:
  explicit cost_model(model_shape model, const constants& c = {})
      : model_{std::move(model)}, c_{c} {}

  const model_shape& model() const { return model_; }
  const constants& values() const { return c_; }

  /// 2NB / (e (N + 2Bd)), Lamina 2.2.1 (L-M01).
  double intensity(double rows) const;

  /// All operators but attention and all-reduce, of `rows` rows, on `group` as one tensor-parallel
  /// replica: reading the weights and computing joined by a p-norm, elementwise passes, kernel
  /// gaps.
  double model_s(const device_group& group, double rows) const;

  /// Two all-reduces of [rows, d] per layer between the devices of one replica.
  double all_reduce_s(const device_group& group, double rows) const;

  /// Attention of one new token for each of `rows` requests with `context` tokens together (L-M02):
  /// bound by reading their KV; linear in `context`, whoever owns it. `copies` of the KV are read.
  double attention_s(const device_group& group, double rows, double context,
                     double copies = 1) const;

  /// Attention of `tokens` of a prompt, behind `position` earlier ones, on `group`.
  double prompt_attention_s(const device_group& group, double tokens, double position) const;

  /// A prompt of `tokens`, on `group` as one replica, its attention included.
  double prefill_s(const device_group& group, double tokens) const;

  network_path path(network_kind kind, const device_group& one, const device_group& other) const;

  /// All of an iteration's sends, one after the other: L round trips and (2 + 2/G) e d B L bytes
  /// (L-M05).
  double network_s(const network_path& path, double rows) const;

  /// How long an iteration's bytes occupy NICs of that bandwidth: those of the fuller direction, Q,
  /// K and V, as both directions flow at once.
  double nic_busy_s(double bandwidth, double rows) const;

  /// What the model part of a disaggregated design takes more than model_s(): Q, K and V are
  /// projected one by one.
  double slice_kernels_s() const;

  /// What sending Q early hides (L-M15, L-M16): attention over the old tokens runs while K and V
  /// are projected and sent.
  double overlap_s(const device_group& compute, const device_group& memory,
                   const network_path& path, double rows, double context) const;

  /// What sending a batch in `pieces` mini-batches hides of the network: attention over one piece
  /// runs while the next is on its way (V-M08; Lamina v1 5.2.1). Round trips are not hidden.
  double streamed_s(const network_path& path, double rows, double attention_s,
                    uint32_t pieces) const;

  /// Bandwidth at which the network adds no more than `alpha` of model and attention time
  /// (L-M04, Lamina 3.1), all NICs together (C11).
  double bandwidth_needed(double rows, double model_s, double attention_s,
                          double alpha = 0.2) const;

  /// Bandwidth at which the transfers of an iteration take no longer than its model part, which two
  /// batches can hide one behind the other: 4 e d B L / t (V-M02); K and V as wide as Q (C05).
  double bandwidth_no_slowdown(double rows, double model_s) const;

  /// Tokens whose KV fits beside `weight_bytes` on the group.
  double kv_tokens(const device_group& group, double weight_bytes) const;

private:
  double matmul_s(const device& kind, double weights, double rows) const;

  model_shape model_;
  constants c_;
};

/// NICs of a device, or its share of the host link where it has none of its own.
double nic_of(const device& kind, const constants& c);

} // namespace lamella::scheduler
