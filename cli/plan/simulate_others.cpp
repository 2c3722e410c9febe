/// `lamella simulate --design splitwise` and `--design neo`.
#include "cli/commands.hpp"
#include "cli/plan/simulate.hpp"
#include "scheduler/planner/papers/neo.hpp"
#include "scheduler/planner/papers/reproduction.hpp"
#include "scheduler/planner/report.hpp"

#include <map>

namespace lamella::cli {

namespace {

using scheduler::offload_kind;

/// "25xDGX-H100", or "none".
std::pair<uint32_t, std::string> machines_of(const std::string& text, const char* flag) {
  static const std::vector<scheduler::device> known = [] {
    std::vector<scheduler::device> all(3);
    all[0].name = "DGX-A100";
    all[1].name = "DGX-H100";
    all[2].name = "DGX-H100-capped";
    return all;
  }();
  if (text == "none") return {0, known[1].name};
  const auto group = group_of(text, flag, known);
  return {group.count, group.kind.name};
}

/// Splitwise's measurements of a model of the table.
struct profiled_model {
  const char *name, *profile;
};
constexpr profiled_model profiled_models[] = {{"BLOOM-176B", "bloom-176b"},
                                              {"LLaMA2-70B", "llama2-70b"}};

const char* profile_name_of(const std::string& model) {
  std::string known;
  for (const auto& x : profiled_models) {
    if (x.name == model) return x.profile;
    known += (known.empty() ? "" : ", ") + std::string{x.name};
  }
  throw command_error{exit_usage,
                      "--model: the measurements of --design splitwise have no '" + model + "'",
                      "models with measurements: " + known};
}

/// The models of the table that leave room for KV on these devices.
std::string models_that_fit(const scheduler::device_group& gpu,
                            const std::vector<scheduler::model_shape>& all,
                            const scheduler::constants& c) {
  std::string fit;
  for (const auto& x : all)
    if (scheduler::cost_model{x, c}.kv_tokens(gpu, x.weight_bytes) > 0)
      fit += (fit.empty() ? "" : ", ") + x.name;
  return fit.empty() ? "no model of the table fits: more or larger devices in --gpu"
                     : "models of the table that fit: " + fit;
}

/// Slots into the result what every simulator knows.
template <class Result> void fill(scheduler::simulation_result& to, const Result& r) {
  to.seconds = to.measured_seconds = r.seconds;
  to.requests = r.requests;
  to.tokens = r.tokens;
  to.tbt = r.tbt;
  to.ttft = r.ttft;
  to.e2e = r.e2e;
  if (r.seconds <= 0) return;
  to.tokens_per_s = static_cast<double>(r.tokens) / r.seconds;
  // Requests between their first and their last token, over time.
  to.mean_batch = to.rate_times_stay = (r.e2e.sum() - r.ttft.sum()) / r.seconds;
}

} // namespace

other_run run_splitwise(const simulate_options& o, const scheduler::constants& c,
                        const scheduler::request_trace& trace) {
  const std::string model = profile_name_of(o.model);
  const auto rows = load_profile();
  const auto machine = [&](const std::string& name) {
    return scheduler::dgx_machine(c, rows, model,
                                  name == "DGX-A100"   ? "a100-80gb"
                                  : name == "DGX-H100" ? "h100-80gb"
                                                       : "h100-80gb-pcap");
  };
  const auto [prompts, prompt_name] = machines_of(o.prompt, "--prompt");
  const auto [tokens, token_name] = machines_of(o.token, "--token");
  if (tokens == 0)
    throw command_error{exit_usage, "--token: no machine decodes",
                        "with --prompt none, these machines do both"};
  const scheduler::splitwise_design design{machine(prompt_name), machine(token_name), prompts,
                                           tokens};
  scheduler::splitwise_options options;
  options.key =
      o.decode_key == "released" ? scheduler::decode_key::released : scheduler::decode_key::batch;
  options.layer_wise = o.transfer == "layers";
  options.mixed_slowdown = c.mixed_slowdown;
  options.repurpose_s = o.repurpose_s;
  options.report_s = o.report_s;
  options.checkpoint = o.checkpoint;
  options.batching = o.batching == "request"      ? scheduler::batching_mode::request
                     : o.batching == "continuous" ? scheduler::batching_mode::continuous
                                                  : scheduler::batching_mode::mixed;
  for (const auto& text : o.failures)
    options.failures.push_back(machine_failure_of(text, prompts + tokens));
  const auto r = scheduler::simulate_splitwise(design, machine("DGX-A100"), trace, options);
  other_run run;
  const auto& kw = scheduler::built_in_devices();
  const auto* a100 = scheduler::find_device(kw, "A100-80G-SXM");
  // Machine power is known relative to a DGX-A100; its devices' share is the scale.
  run.design = {
      (prompts ? std::to_string(prompts) + " x " + prompt_name + " for prompts, " : "")
          + std::to_string(tokens) + " x " + token_name + (prompts ? " for tokens" : " for both"),
      design.usd_per_hour(), design.watts() * (a100 ? 8 * a100->watts : 0),
      std::string{"prompt included; the nine SLOs are "} + (r.meets_slo() ? "kept" : "missed")};
  const auto wh = r.requests > 0 ? r.joules / 3600 / static_cast<double>(r.requests) : 0;
  run.design.numbers = {{"requests_per_s", r.requests_per_s()},
                        {"requests_per_usd", r.requests_per_usd(design)},
                        {"device_wh_per_request", wh}};
  run.design.more = "batch job   " + scheduler::fixed(r.requests_per_s(), 2) + " requests/s, "
                    + scheduler::fixed(r.requests_per_usd(design), 3)
                    + " for a dollar per hour; devices used " + scheduler::fixed(wh, 2)
                    + " Wh per request while they worked\n";
  fill(run.result, r);
  run.result.running_over_time = r.mean_decoding;
  run.result.failures = r.failures;
  run.result.preemptions = r.preempted;
  run.result.recomputed_tokens = r.lost_tokens;
  return run;
}

other_run run_neo(const simulate_options& o, const scheduler::constants& c,
                  const scheduler::request_trace& trace) {
  static const std::map<std::string, offload_kind> kinds{{"neo", offload_kind::neo},
                                                         {"none", offload_kind::none},
                                                         {"simple", offload_kind::simple},
                                                         {"symmetric", offload_kind::symmetric},
                                                         {"full", offload_kind::full}};
  const auto all = load_devices(o.hardware);
  const auto models = load_models(o.models);
  const scheduler::cost_model cost{model_named(models, o.model), c};
  const auto& host = device_named(all, o.cpu, "--cpu");
  if (host.kind != "cpu")
    throw command_error{exit_usage, "--cpu: " + host.name + " is not a host but a " + host.kind,
                        "name a device of the table whose kind is cpu, such as x86-8ch-generic"};
  scheduler::neo_machine m;
  m.gpu = group_of(o.gpu, "--gpu", all);
  m.gpu_kv_tokens = cost.kv_tokens(m.gpu, cost.model().weight_bytes);
  if (m.gpu_kv_tokens <= 0) {
    scheduler::decode_design d;
    d.compute = m.gpu;
    throw command_error{exit_configuration, scheduler::refuse(d, cost).value_or("no room for KV"),
                        models_that_fit(m.gpu, models, c)};
  }
  m.host_kv_tokens = host.memory_bytes * c.memory_utilization / cost.model().kv_bytes_per_token();
  m.host_bandwidth = host.bandwidth * c.host_attention_efficiency;
  m.pcie_bandwidth = c.host_link_gbs * 1e9 * m.gpu.count;
  m.batch_tokens_max = c.a10g_batch_tokens;
  scheduler::neo_result r;
  try {
    r = scheduler::simulate_neo(m, cost, kinds.at(o.offload), trace);
  } catch (const std::invalid_argument& e) {
    throw command_error{exit_configuration, e.what()};
  }
  other_run run;
  run.design = {std::to_string(m.gpu.count) + " x " + m.gpu.kind.name + " with " + host.name
                    + ", offload " + o.offload,
                m.gpu.usd_per_hour() + host.usd_per_hour, m.gpu.watts() + host.watts,
                "waiting and prefill included"};
  fill(run.result, r);
  run.result.running_over_time = r.mean_running;
  run.result.never_fit = r.never_fit;
  run.result.iterations = r.iterations;
  return run;
}

} // namespace lamella::cli
