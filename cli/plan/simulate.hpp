/// The flags of `simulate` (and `plan`, in part).
#pragma once

#include "cli/data_files.hpp"
#include "scheduler/planner/papers/splitwise.hpp"
#include "scheduler/planner/served_profile.hpp"
#include "scheduler/planner/simulator.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace lamella::cli {

struct simulate_options {
  std::string design = "lamina";
  std::string compute = "2xH100-SXM", memory = "4xH20", devices = "4xH100-SXM";
  std::string prompt = "25xDGX-H100", token = "15xDGX-H100"; ///< splitwise
  std::string decode_key = "batch", transfer = "layers";     ///< splitwise
  double repurpose_s = 0, report_s = 0;                      ///< splitwise
  bool checkpoint = false;                                   ///< splitwise
  std::string batching = "mixed";                            ///< splitwise
  std::string gpu = "1xA10G", cpu = "x86-8ch-generic", offload = "neo";
  std::string model, trace = "azure_conv_2023"; ///< model: empty is the design's default
  uint32_t replicas = 0, tensor_parallel = 0, stages = 1, compute_nics = 0, memory_nics = 0;
  std::string batches = "2"; ///< or auto
  std::string pipeline = "rotational", partition = "heads", network = "fhbn", overlap = "on";
  std::string kv = "paged", host_overhead = "equal", load = "saturated", reproduce;
  std::string profile; ///< served
  std::string hardware, models, json_file, csv, timeline, markdown, svg;
  uint64_t seed = 1;
  std::vector<std::string> constants; ///< NAME=VALUE
  std::vector<std::string> failures;  ///< WHAT@SECONDS[+SECONDS]
  std::vector<std::string> scalings;  ///< WHAT@SECONDS=+N or -N
  std::vector<std::string> autoscale; ///< WHAT=MIN..MAX
  std::vector<std::string> slo;       ///< targets of the autoscaler
  std::vector<std::string> policy;    ///< NAME=VALUE, settings of the autoscaler
  std::string looks;                  ///< written: what the autoscaler saw
  std::string scaling_trace;          ///< read: the same
  std::string prefill;                ///< COUNTxDEVICE, beside or none
  uint32_t prefill_servers = 1;
  std::string launches = "separate";
  double tbt_target_s = 0; ///< of prompts beside decoding; 0: no bound
  uint32_t stand_backs = 0;
  double prefix_cache_s = 0;
  bool json = false;
};

/// "4xH20" with the device looked up. Throws command_error 2.
scheduler::device_group group_of(const std::string& text, const char* flag,
                                 const std::vector<scheduler::device>& all);

/// The constants, some of them overridden by NAME=VALUE. Throws command_error 2.
scheduler::constants constants_of(const std::vector<std::string>& overrides);

/// published, equal or MS,US. `baseline`: published overhead is for the baseline alone.
scheduler::host_overhead overhead_of(const std::string& text, bool baseline,
                                     const scheduler::constants& c);

/// Arrivals: saturated (ignored), trace (its own), Poisson at a rate per second, or with gamma gaps
/// of a shape at that rate. Throws command_error 2.
scheduler::request_trace with_load(scheduler::request_trace trace, const std::string& load,
                                   uint64_t seed);

/// "memory@60", "compute@60+20": a device that fails, and the time until its spare is ready. Throws
/// command_error 2; `memory` is rejected where a design has no memory devices.
scheduler::failure_event failure_of(const std::string& text, bool disaggregated);

/// "memory@60=+1", "compute@60=-1": devices that are added or removed (compute: whole replicas).
/// Throws command_error 2.
scheduler::scaling_event scaling_of(const std::string& text, bool disaggregated);

/// A number within bounds. Throws command_error 2.
double number_of(const std::string& text, const std::string& flag, double most, double least = 0);

/// "memory=2..8": a pool and its bounds, of --autoscale, with the settings and targets of the other
/// flags. Throws command_error 2.
scheduler::autoscaling autoscaling_of(const simulate_options& o, bool disaggregated, bool prompts);

/// Prints what the autoscaler decides over the looks of --scaling-trace. Throws command_error 65
/// where the file is none, 66 where there is no file.
int replay_scaling_trace(const simulate_options& o);

/// The steps of an autoscaler, for the table: one line each, the first ones of many.
std::string steps_table(const scheduler::simulation_result& result);

/// "compute", "memory" or "prefill", as flags name the pools.
const char* flag_word(scheduler::scaled_pool pool);

/// Where prefill runs: "2xH100-SXM" in `servers` servers, beside (on the decode devices), or
/// nowhere. Throws command_error 2.
void give_prefill(scheduler::decode_design& design, const std::string& text, uint32_t servers,
                  const std::vector<scheduler::device>& all);

/// "3@60+20": a machine of a splitwise design. Throws command_error 2.
scheduler::machine_failure machine_failure_of(const std::string& text, uint32_t machines);

/// A seed applies to Poisson arrivals only. Throws command_error 2 where there are none.
void refuse_unused_seed(const std::string& load);

/// The design of a lamina or homogeneous simulation.
scheduler::decode_design design_of(const simulate_options& o, const scheduler::constants& c);

/// Texts shown with a result.
struct shown_design {
  std::string text;
  double usd_per_hour = 0, watts = 0;
  std::string ttft_note; ///< what TTFT does and does not contain
  std::string balance{}; ///< where model and attention take the same time; may be empty
  std::vector<std::pair<const char*, double>> measured{}; ///< of a run by a profile, for JSON
  std::string more{}; ///< lines of its own kind for the table; may be empty
  std::vector<std::pair<const char*, double>> numbers{}; ///< the same for JSON
};

/// The report as JSON, version 1 (docs/planner.md).
std::string simulation_json(const shown_design& design, const scheduler::simulation_result& result,
                            const simulate_options& o, const scheduler::constants& c);
/// A few lines for a terminal.
std::string simulation_table(const shown_design& design, const scheduler::simulation_result& result,
                             const simulate_options& o);

/// The service of a profile, in a line.
std::string describe(const scheduler::served_profile& p);

/// The other kinds of design, each with its own simulator; unsupported values stay 0.
struct other_run {
  shown_design design;
  scheduler::simulation_result result;
};
other_run run_splitwise(const simulate_options& o, const scheduler::constants& c,
                        const scheduler::request_trace& trace);
/// Sets o.model to the measured model.
other_run run_served(simulate_options& o, const scheduler::request_trace& trace,
                     const std::function<void(const scheduler::iteration_span&)>& on_iteration);
other_run run_neo(const simulate_options& o, const scheduler::constants& c,
                  const scheduler::request_trace& trace);

/// The default model of a kind of design: one that its default devices can hold and its
/// measurements cover.
std::string default_model(const std::string& design);

/// What --csv and --timeline write, iteration by iteration.
class iteration_files {
public:
  explicit iteration_files(const simulate_options& o) : options_{o} {}
  /// Empty where neither is wanted. Must not outlive this object.
  std::function<void(const scheduler::iteration_span&)> sink();
  /// Writes both. Throws command_error 1.
  void save();

private:
  void add(const scheduler::iteration_span& x);
  const simulate_options& options_;
  std::string csv_ = "start_s,duration_s,batch,requests,context_tokens\n";
  std::string events_;
};

/// Writes a file whole. Throws command_error 1, with the flag that asked for it.
void save_file(const std::string& path, const char* flag, const std::string& text);

int simulate_command(simulate_options o);

} // namespace lamella::cli
