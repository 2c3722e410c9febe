/// Every number of the cost models that no data sheet gives, with its unit and its source.
///
/// One value serves all cases: nothing here depends on the model, the trace, the device or the
/// paper. `kind` says how much to trust it: *measured* comes from published measurements, *stated*
/// is a default or a claim of a paper, *fitted* was chosen within what is physical so that a
/// published result comes out.
#pragma once

#include <array>
#include <string_view>

namespace lamella::scheduler {

enum class constant_kind : unsigned char { measured, stated, fitted };

// X(name, value, unit, kind, source)
#define LAMELLA_CONSTANTS(X)                                                                       \
  X(weight_read_efficiency, 0.88, "share of peak bandwidth", measured,                             \
    "Vidur profiles, Llama-2-70B linear operators, 1 row: 0.89 on H100, 0.80 on A100")             \
  X(matmul_efficiency, 0.70, "share of peak compute", measured,                                    \
    "Vidur profiles, 512 to 4096 rows: 0.67 to 0.76 on H100 and A100")                             \
  X(roofline_sharpness, 4.0, "exponent", measured,                                                 \
    "p-norm of read and compute time; Vidur profiles at 256 rows, where the two meet")             \
  X(attention_efficiency, 0.80, "share of peak bandwidth", stated,                                 \
    "Lamina 2.2.2: over 0.70 from batch 20 on, H100 and H20; Lamina v1 3: over 0.80")              \
  X(attention_flops_efficiency, 0.50, "share of peak compute", stated,                             \
    "only felt where a large group meets a device of little compute")                              \
  X(matmul_kernels, 4.0, "kernels per layer", stated, "QKV, output, gate and up, down")            \
  X(slice_kernels, 2.0, "kernels per layer", stated,                                               \
    "more in slices that send Q early: K and V are projected by themselves (Lamina 4.2.2)")        \
  X(elementwise_kernels, 4.0, "kernels per layer", stated, "two norms, rotation, activation")      \
  X(kernel_gap_us, 4.25, "us per kernel", measured,                                                \
    "Vidur profiles: 17 us per layer do not shrink with tensor parallelism")                       \
  X(elementwise_passes_whole, 12.0, "passes over [rows, d]", measured,                             \
    "Vidur profiles, elementwise column, the part every device repeats")                           \
  X(elementwise_passes_split, 20.0, "passes over [rows, d]", measured,                             \
    "Vidur profiles, elementwise column, the part tensor parallelism splits")                      \
  X(all_reduce_start_us, 10.0, "us", measured, "Vidur all-reduce, H100: 7 to 43 us up to 1 MB")    \
  X(all_reduce_step_us, 6.0, "us per doubling of devices", measured,                               \
    "Vidur all-reduce, H100, 2 to 8 devices below 1 MB")                                           \
  X(link_efficiency, 0.77, "share of link bandwidth", measured,                                    \
    "Vidur all-reduce, H100, 4 devices, 67 MB")                                                    \
  X(default_link_gbs, 450.0, "GB/s", stated, "Lamina table 1 (NVLink); for tables without it")     \
  X(host_link_gbs, 25.0, "GB/s", stated, "PCIe 4.0 x16; devices with a NIC below 200 Gbps")        \
  X(fhbn_round_trip_us, 33.0, "us", measured, "Lamina 6.3")                                        \
  X(fhbn_efficiency, 0.914, "share of line rate", measured, "Lamina 6.3: 45.7 of 50 GB/s")         \
  X(host_network_round_trip_us, 66.6, "us", measured, "Lamina 6.3: NCCL with GPUDirect")           \
  X(host_network_efficiency, 0.71, "share of line rate", measured, "Lamina 6.3: 35.5 of 50 GB/s")  \
  X(nic_price_share, 0.08, "of a device's price", stated,                                          \
    "assumed: a 400 Gb/s adapter with its switch port and cable, some $3,000, beside a device of " \
    "$36,500; what a NIC more costs and one that is shared saves")                                 \
  X(nic_watts, 35.0, "W", stated, "assumed: adapter and both ends of its cable, 400 Gb/s")         \
  X(memory_utilization, 0.90, "share of device memory", stated, "vLLM's default, on all devices")  \
  X(workspace_gb, 2.0, "GB per device", fitted,                                                    \
    "activations, communication buffers and graphs beside the weights; engines report 1 to 4")     \
  X(baseline_seats, 256.0, "requests", stated, "vLLM's default max_num_seqs, per engine")          \
  X(baseline_kept_free, 0.01, "share of KV blocks", stated, "vLLM's default watermark")            \
  X(dgx_a100_usd, 17.6, "USD per hour", stated, "Splitwise table I, eight devices")                \
  X(dgx_h100_usd, 38.0, "USD per hour", stated,                                                    \
    "Splitwise table I; table V says 2.35 and 2.5 times an A100 machine instead of 2.16 (C19)")    \
  X(dgx_h100_power, 1.75, "times a DGX-A100", stated, "Splitwise table V")                         \
  X(dgx_h100_capped_power, 1.23, "times a DGX-A100", stated, "Splitwise table V, devices at half") \
  X(dgx_h100_cap, 0.5, "share of the devices' power", stated, "Splitwise IV-D: HHcap")             \
  X(dgx_a100_transfer_ms, 8.0, "ms", measured, "Splitwise VI-A: visible part, layer by layer")     \
  X(dgx_h100_transfer_ms, 5.0, "ms", measured, "Splitwise VI-A: visible part, layer by layer")     \
  X(dgx_memory_utilization, 1.0, "share of device memory", stated,                                 \
    "released simulator of Splitwise: all that the weights leave holds KV")                        \
  X(mixed_slowdown, 1.1, "times the prompt time", stated,                                          \
    "released simulator of Splitwise: an iteration of prompts that carries tokens along")          \
  X(host_attention_efficiency, 0.80, "share of peak bandwidth", fitted,                            \
    "attention on host processors; as on devices")                                                 \
  X(g5_4xlarge_host_gbs, 34.0, "GB/s", stated,                                                     \
    "a sixth of an EPYC socket's 204.8; NEO 5.4: 2xlarge the same, 8xlarge twice, 16xlarge 4x")    \
  X(g5_16xlarge_host_gb, 120.0, "GB of KV", stated, "NEO's released setting; by cores (NEO 5.4)")  \
  X(g4dn_host_gbs, 47.0, "GB/s", stated, "8 of 24 cores of a socket with 140.8")                   \
  X(hgx_host_gbs, 614.0, "GB/s", stated, "two sockets, 8 channels of DDR5-4800 each; NEO 5.1")     \
  X(hgx_host_gb, 800.0, "GB of KV", stated, "assumed, of 2 TB; never full")                        \
  X(v1_mini_batches, 3.0, "pieces of a batch", fitted,                                             \
    "Lamina v1 6.3: streaming hides up to 62.2 % of the network's time; their number is not "      \
    "published")                                                                                   \
  X(v1_pipelined_above, 128.0, "requests", stated,                                                 \
    "Lamina v1 6.1: recommended for larger batches")                                               \
  X(t4_kv_tokens, 864.0, "tokens", stated, "NEO's released setting: 54 blocks of 16")              \
  X(t4_batch_tokens, 832.0, "tokens", stated, "NEO's released setting")                            \
  X(t4_host_gb, 20.0, "GB of KV", stated, "NEO's released setting")                                \
  X(a10g_kv_tokens, 26400.0, "tokens", stated, "NEO's released setting: 1650 blocks of 16")        \
  X(a10g_batch_tokens, 20480.0, "tokens", stated, "NEO's released setting")                        \
  X(h100_pair_kv_tokens, 67000.0, "tokens", stated,                                                \
    "two devices of 80 GiB at 0.95 less 141 GB of weights; not published")                         \
  X(host_iteration_ms, 2.0, "ms per iteration", fitted,                                            \
    "launch and collection of one iteration by a Python engine of 2024 over tensor parallelism")   \
  X(host_request_us, 105.0, "us per request and iteration", fitted,                                \
    "vLLM 0.6 performance note: 62 % of an 8B model's time on one H100 is host work, which at "    \
    "256 requests and our GPU time is 80 us each; four tensor-parallel workers cost more")

/// The values. Fields are named as in the list; change one to see what depends on it.
struct constants {
#define LAMELLA_FIELD(name, value, unit, kind, source) double name = value;
  LAMELLA_CONSTANTS(LAMELLA_FIELD)
#undef LAMELLA_FIELD
};

/// One row of the list, to be printed beside results.
struct constant_row {
  std::string_view name;
  double constants::*field;
  std::string_view unit;
  constant_kind kind;
  std::string_view source;
};

inline constexpr std::array constant_rows{
#define LAMELLA_ROW(name, value, unit, kind, source)                                               \
  constant_row{#name, &constants::name, unit, constant_kind::kind, source},
    LAMELLA_CONSTANTS(LAMELLA_ROW)
#undef LAMELLA_ROW
};
#undef LAMELLA_CONSTANTS

/// What a constant may be set to: shares at most to all of it, and to nothing only where nothing
/// divides by it.
struct constant_range {
  double least = 0, most = 1e6;
};

constexpr constant_range range_of(const constant_row& row) {
  constexpr double little = 1e-3;
  constexpr std::string_view may_be_nothing[] = {
      "us",
      "us per doubling of devices",
      "us per kernel",
      "us per request and iteration",
      "ms",
      "ms per iteration",
      "kernels per layer",
      "passes over [rows, d]",
      "GB per device",
      "W",
      "USD per hour",
      "share of KV blocks",
      "of a device's price",
  };
  constexpr std::string_view at_least_one[] = {"exponent", "requests", "pieces of a batch",
                                               "tokens", "times the prompt time"};
  constant_range range{little};
  for (const auto unit : may_be_nothing)
    if (row.unit == unit) range.least = 0;
  for (const auto unit : at_least_one)
    if (row.unit == unit) range.least = 1;
  if (row.unit.starts_with("share")) range.most = 1;
  return range;
}

constexpr std::string_view name_of(constant_kind kind) {
  return kind == constant_kind::measured ? "measured"
         : kind == constant_kind::stated ? "stated"
                                         : "fitted";
}

} // namespace lamella::scheduler
