/// The flags of `lamella plan` and its outputs.
#pragma once

#include "scheduler/planner/served_planner.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lamella::cli {

struct plan_options {
  std::string model = "LLaMA3-70B", trace = "azure_conv_2023", menu = "H100-SXM,H20";
  std::string host_overhead = "equal", objective = "cost", hardware, models, svg, emit, model_path,
              profile, prefill;
  std::vector<std::string> slo, constants;
  double rate = 0, budget = 0, power_budget = 0;
  uint32_t prefill_servers = 1, devices_max = 16, batches_max = 4, stages_max = 1, top = 20,
           threads = 0;
  bool json = false;
};

/// "tbt:p99:60ms" and so on. Throws command_error 2.
scheduler::latency_limit limit_of(const std::string& word);

/// The ranked rows; with a rate, also TTFT and E2E; without limits, the column says none. Values
/// missing in the table of devices are "-".
std::string plan_table(const std::vector<scheduler::plan_row>& rows, uint32_t shown,
                       const scheduler::plan_question& q);

/// The unmeasured constants that the best design depends on most.
std::string sensitivity_text(const std::vector<scheduler::sensitivity>& all,
                             scheduler::plan_objective objective);

/// The service of --profile for the same trace and limits. It has its own model and machine, and
/// includes prefill: it is listed separately from the ranked designs.
struct measured_plan {
  std::string service; ///< in a line
  scheduler::served_plan plan;
};
std::string measured_text(const measured_plan& m, const scheduler::plan_question& q);

std::string plan_json(const std::vector<scheduler::plan_row>& rows, const std::string& verdict,
                      const std::vector<scheduler::sensitivity>& sensitive,
                      const std::optional<measured_plan>& measured, const plan_options& o);

/// The configuration of one copy of a design. It passes `lamella config check` once the model
/// exists; site-specific values (model file, placement, devices) are marked "fill in".
std::string plan_yaml(const scheduler::plan_row& row, const scheduler::model_shape& model,
                      const plan_options& o);

/// A Kubernetes manifest around that configuration: ConfigMap, Deployment with a pod per copy and
/// probes on the operators' listener, Service.
std::string plan_manifest(const scheduler::plan_row& row, const scheduler::model_shape& model,
                          const plan_options& o);

int plan_command(const plan_options& o);

} // namespace lamella::cli
