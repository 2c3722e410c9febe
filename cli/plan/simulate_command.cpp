/// `lamella simulate`: a trace through the live scheduling on hardware that is not there.
#include "cli/commands.hpp"
#include "cli/plan/simulate.hpp"
#include "scheduler/planner/dop.hpp"
#include "scheduler/planner/papers/reproduction.hpp"
#include "scheduler/planner/planner.hpp"
#include "scheduler/planner/report.hpp"
#include "scheduler/scaling_text.hpp"

#include <cstdio>

namespace lamella::cli {

namespace {

int reproduce(const simulate_options& o, const scheduler::constants& c) {
  scheduler::report r;
  if (o.reproduce == "lamina")
    r = scheduler::reproduce_lamina(c, load_trace);
  else if (o.reproduce == "splitwise")
    r = scheduler::reproduce_splitwise(c, load_profile(), load_trace);
  else if (o.reproduce == "neo")
    r = scheduler::reproduce_neo(c, load_trace);
  else
    r = scheduler::reproduce_lamina_v1(c);
  const auto text = scheduler::markdown_of(r, c);
  std::fputs(text.c_str(), stdout);
  if (!o.markdown.empty()) save_file(o.markdown, "--markdown", text);
  if (!o.svg.empty()) save_file(o.svg, "--svg", scheduler::svg_of(r));
  return exit_success;
}

/// Chooses the batches of --batches auto or --pipeline auto for a trace. Says with how many memory
/// devices attention takes a replica's turn; nothing where one batch has no turns, or all devices
/// are alike.
std::string balance(scheduler::decode_design& design, const scheduler::cost_model& cost,
                    const scheduler::request_trace& trace, const simulate_options& o) {
  if (!design.disaggregated()) return "";
  const auto w = scheduler::workload_of(trace);
  const auto full = scheduler::slots_per_pool(design, cost) * design.pools() / w.context;
  if (o.pipeline != "off" && (o.batches == "auto" || o.pipeline == "auto"))
    design.batches = scheduler::batches_for(design, cost, full, full * w.context);
  if (design.batches <= 1) return "";
  const auto one = full / design.batches;
  return "attention takes a replica's turn with "
         + std::to_string(scheduler::memory_devices_for(design, cost, one, one * w.context, 64))
         + " x " + design.memory.kind.name + " at this batch";
}

scheduler::simulation_options options_of(const simulate_options& o,
                                         const scheduler::decode_design& design,
                                         const scheduler::constants& c) {
  scheduler::simulation_options options;
  options.load =
      o.load == "saturated" ? scheduler::load_kind::saturated : scheduler::load_kind::arrivals;
  if (o.design == "homogeneous") options.seats_per_batch = static_cast<uint32_t>(c.baseline_seats);
  for (const auto& text : o.failures)
    options.failures.push_back(failure_of(text, design.disaggregated()));
  for (const auto& text : o.scalings)
    options.scalings.push_back(scaling_of(text, design.disaggregated()));
  if (!o.autoscale.empty())
    options.autoscale = autoscaling_of(o, design.disaggregated(), design.prefill_servers > 0);
  return options;
}

/// The texts of a lamina or homogeneous run.
shown_design shown_of(const scheduler::decode_design& design,
                      const scheduler::simulation_result& result, const std::string& balance_text) {
  shown_design shown{scheduler::describe(design), design.priced() ? design.usd_per_hour() : 0,
                     design.powered() ? design.watts() : 0,
                     design.prompts() ? "waiting and prefill included"
                                      : "waiting and first decoded token, no prefill",
                     balance_text};
  if (design.prefill_servers > 0) {
    shown.more += "prompts     prefill servers are busy "
                  + scheduler::fixed(100 * result.prefill_busy, 0) + " % of the time\n";
    shown.numbers.emplace_back("prefill_busy", result.prefill_busy);
  }
  if (design.prefix_cache_s > 0) {
    const auto found = result.prefix_queries > 0 ? static_cast<double>(result.prefix_hits)
                                                       / static_cast<double>(result.prefix_queries)
                                                 : 0;
    shown.more += result.prefix_queries > 0
                      ? "found       " + scheduler::fixed(100 * found, 1)
                            + " % of the prompts' tokens in the prefix cache\n"
                      : "found       nothing: the trace has no hash_ids of shared prefixes\n";
    shown.numbers.emplace_back("prefix_found", found);
  }
  if (result.scalings > 0) {
    if (design.priced()) shown.usd_per_hour = result.mean_usd_per_hour;
    shown.more +=
        "scaled      " + std::to_string(result.scalings)
        + " times; dollars per hour are the mean of the run, power is that of its start\n";
    shown.numbers.emplace_back("scalings", static_cast<double>(result.scalings));
  }
  if (result.most_device_hours > 0) shown.more += steps_table(result);
  return shown;
}

/// A lamina or homogeneous design. Writes `files`.
other_run run_decode(const simulate_options& o, const scheduler::constants& c,
                     iteration_files& files) {
  auto design = design_of(o, c);
  const scheduler::cost_model cost{model_named(load_models(o.models), o.model), c};
  if (const auto why = scheduler::refuse(design, cost))
    throw command_error{exit_configuration, *why};
  const auto trace = with_load(load_trace(o.trace), o.load, o.seed);
  const auto balanced = balance(design, cost, trace, o);
  auto options = options_of(o, design, c);
  options.on_iteration = files.sink();
  std::string looks;
  if (!o.looks.empty()) {
    looks = scheduler::text_of(options.autoscale->settings) + "\n";
    options.on_look = [&](const scheduler::scaling_look& x) {
      looks += scheduler::text_of(x) + "\n";
    };
  }
  scheduler::simulation_result result;
  try {
    result = scheduler::simulate(design, cost, trace, options);
  } catch (const std::invalid_argument& e) {
    throw command_error{exit_configuration, e.what()};
  }
  files.save();
  if (!o.looks.empty()) save_file(o.looks, "--looks", looks);
  return {shown_of(design, result, balanced), std::move(result)};
}

} // namespace

int simulate_command(simulate_options o) {
  if (!o.scaling_trace.empty()) return replay_scaling_trace(o);
  if (o.model.empty()) o.model = default_model(o.design);
  const auto c = constants_of(o.constants);
  if (!o.reproduce.empty()) return reproduce(o, c);
  const auto show = [&](const shown_design& design, const scheduler::simulation_result& result) {
    const auto text =
        o.json ? simulation_json(design, result, o, c) : simulation_table(design, result, o);
    std::fputs(text.c_str(), stdout);
    return exit_success;
  };
  iteration_files files{o};
  if (o.design == "served") {
    const auto run = run_served(o, with_load(load_trace(o.trace), o.load, o.seed), files.sink());
    files.save();
    return show(run.design, run.result);
  }
  if (o.design == "splitwise" || o.design == "neo") {
    auto trace = with_load(load_trace(o.trace), o.load, o.seed);
    if (o.load == "saturated") // all at once
      for (auto& x : trace) x.arrival_s = 0;
    const auto other = o.design == "neo" ? run_neo(o, c, trace) : run_splitwise(o, c, trace);
    return show(other.design, other.result);
  }
  const auto run = run_decode(o, c, files);
  return show(run.design, run.result);
}

} // namespace lamella::cli
