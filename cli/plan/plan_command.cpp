/// `lamella plan`: the cheapest design that keeps the limits, out of a menu of devices.
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/plan/bench_profile.hpp"
#include "cli/plan/plan.hpp"
#include "cli/plan/simulate.hpp"
#include "cli/terminal.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

namespace lamella::cli {

namespace {

void save(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out{path, std::ios::binary | std::ios::trunc};
  out << text;
  out.close();
  if (!out) throw command_error{exit_failure, "cannot write " + path.string()};
}

/// Calls work(i) for 0 .. count - 1 on all cores, with a line of progress on a terminal.
template <class F> void in_parallel(const char* what, size_t count, uint32_t threads, F work) {
  std::atomic<size_t> next{0}, done{0};
  std::mutex lock;
  std::exception_ptr failure;
  const bool show = is_terminal(STDERR_FILENO);
  const auto loop = [&] {
    for (size_t i; (i = next++) < count;) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard hold{lock};
        failure = std::current_exception();
      }
      const auto now = ++done;
      if (!show) continue;
      const std::lock_guard hold{lock};
      const auto filled = now * 30 / count;
      std::fprintf(stderr, "\r%s [%s%s] %zu/%zu", what, std::string(filled, '#').c_str(),
                   std::string(30 - filled, ' ').c_str(), now, count);
    }
  };
  std::vector<std::thread> team;
  for (uint32_t i = 1; i < threads; ++i) team.emplace_back(loop);
  loop();
  for (auto& t : team) t.join();
  if (show && count > 0) std::fputs("\r\033[K", stderr);
  if (failure) std::rethrow_exception(failure);
}

/// What is to be saved, or limited, must be known of every device.
void check_known(const scheduler::device& d, const char* flag, const plan_options& o) {
  const auto missing = [&](const char* what) {
    return command_error{exit_configuration,
                         std::string{flag} + ": " + d.name + " has no " + what + " in the table",
                         "give it one in a table of your own: --hardware FILE"};
  };
  if (d.usd_per_hour <= 0 && (o.objective == "cost" || o.budget > 0))
    throw missing("price per hour");
  if (d.watts <= 0 && (o.objective == "power" || o.power_budget > 0)) throw missing("power");
}

scheduler::plan_question question_of(const plan_options& o, const scheduler::constants& c) {
  scheduler::plan_question q;
  const auto all = load_devices(o.hardware);
  for (size_t at = 0; at <= o.menu.size();) {
    const auto comma = std::min(o.menu.find(',', at), o.menu.size());
    const auto& d = device_named(all, o.menu.substr(at, comma - at), "--menu");
    check_known(d, "--menu", o);
    if (scheduler::find_device(q.menu, d.name) != nullptr)
      throw command_error{exit_usage, "--menu: " + d.name + " is given twice"};
    q.menu.push_back(d);
    at = comma + 1;
  }
  for (const auto& word : o.slo) q.limits.push_back(limit_of(word));
  q.objective = o.objective == "power"        ? scheduler::plan_objective::power
                : o.objective == "throughput" ? scheduler::plan_objective::throughput
                                              : scheduler::plan_objective::cost;
  q.rate = o.rate;
  for (const auto& x : q.limits)
    if (x.metric != scheduler::latency_metric::tbt && !(q.rate > 0))
      throw command_error{exit_usage, "--slo: limits on TTFT and E2E need --rate",
                          "without a rate, the queue grows without bound"};
  q.devices_max = o.devices_max;
  q.batches_max = o.batches_max;
  q.stages_max = o.stages_max;
  q.usd_per_hour_max = o.budget;
  q.watts_max = o.power_budget;
  q.host = overhead_of(o.host_overhead, true, c);
  scheduler::decode_design prompts;
  give_prefill(prompts, o.prefill, o.prefill_servers, all);
  q.prefill = prompts.prefill;
  q.prefill_servers = prompts.prefill_servers;
  if (q.prefill_servers > 0) check_known(q.prefill.kind, "--prefill", o);
  q.prefill_beside = prompts.prefill_beside;
  return q;
}

/// What the service of --profile does, if one is given.
std::optional<measured_plan> plan_of_profile(const plan_options& o,
                                             const std::optional<scheduler::served_profile>& p,
                                             const scheduler::plan_question& q,
                                             const scheduler::request_trace& trace) {
  if (!p) return std::nullopt;
  try {
    return measured_plan{describe(*p), scheduler::plan_served(*p, q, trace)};
  } catch (const std::invalid_argument& e) {
    throw command_error{exit_configuration, "--profile: " + o.profile + ": " + e.what()};
  }
}

/// The designs that a question allows. Throws command_error 78 where there are none.
std::vector<scheduler::decode_design> designs_for(const scheduler::plan_question& q,
                                                  const scheduler::cost_model& cost,
                                                  const plan_options& o) {
  auto designs = scheduler::enumerate_designs(q, cost);
  if (!designs.empty()) return designs;
  std::string why =
      "no design of at most " + std::to_string(o.devices_max) + " devices holds the model";
  scheduler::decode_design largest;
  largest.compute = {q.menu.front(), std::min(8u, o.devices_max)};
  if (const auto reason = scheduler::refuse(largest, cost)) why += "; for example, " + *reason;
  throw command_error{exit_configuration, why,
                      "more --devices-max or --stages-max, or larger devices in --menu"};
}

/// Closed forms for all, a short trace for those in sight, the whole trace for the best. Each step
/// ranks its rows.
class plan_search {
public:
  using rows = std::vector<scheduler::plan_row>;

  plan_search(const plan_options& o, const scheduler::plan_question& q,
              const scheduler::cost_model& cost, const scheduler::request_trace& trace)
      : options_{o}, question_{q}, cost_{cost}, trace_{trace},
        threads_{o.threads ? o.threads : std::max(1u, std::thread::hardware_concurrency())} {}

  rows estimate(const std::vector<scheduler::decode_design>& designs,
                const scheduler::workload& w) const;
  rows narrow(const rows& all) const;
  rows finish(const rows& close) const;

private:
  const plan_options& options_;
  const scheduler::plan_question& question_;
  const scheduler::cost_model& cost_;
  const scheduler::request_trace& trace_;
  uint32_t threads_;
};

plan_search::rows plan_search::estimate(const std::vector<scheduler::decode_design>& designs,
                                        const scheduler::workload& w) const {
  rows all(designs.size());
  in_parallel("closed forms", all.size(), threads_,
              [&](size_t i) { all[i] = scheduler::estimate(designs[i], question_, cost_, w); });
  scheduler::rank(all, question_);
  return all;
}

plan_search::rows plan_search::narrow(const rows& all) const {
  auto sample = scheduler::shuffled(trace_, 1);
  sample.resize(std::min<size_t>(sample.size(), 2000));
  rows close;
  for (const auto& row : scheduler::best_of_nics(all)) // the homogeneous ones are few: all of them
    if (close.size() < 4 * size_t{options_.top} || !row.design.disaggregated())
      close.push_back(row);
  in_parallel("short traces", close.size(), threads_, [&](size_t i) {
    close[i] = scheduler::evaluate(close[i], question_, cost_, sample);
  });
  scheduler::rank(close, question_);
  return close;
}

plan_search::rows plan_search::finish(const rows& close) const {
  rows best{close.begin(),
            close.begin() + static_cast<long>(std::min<size_t>(options_.top, close.size()))};
  // The verdict compares the best of both kinds.
  for (const bool kind : {false, true}) {
    const auto same = [&](const auto& row) { return row.design.disaggregated() == kind; };
    if (std::any_of(best.begin(), best.end(), same)) continue;
    const auto other = std::find_if(close.begin(), close.end(), same);
    if (other != close.end()) best.push_back(*other);
  }
  in_parallel("whole trace", best.size(), threads_,
              [&](size_t i) { best[i] = scheduler::evaluate(best[i], question_, cost_, trace_); });
  scheduler::rank(best, question_);
  return best;
}

/// The answer as text, on stdout.
void print_answer(const plan_search::rows& best, size_t designs, const std::string& says,
                  const std::vector<scheduler::sensitivity>& sensitive,
                  const std::optional<measured_plan>& measured, const scheduler::plan_question& q,
                  const plan_options& o) {
  std::printf("%zu designs for %s on %s; %s.\n%s\n%s\n", designs, o.model.c_str(), o.trace.c_str(),
              q.prefill_beside        ? "prefill runs on the decode devices"
              : q.prefill_servers > 0 ? "every copy has its own prefill servers"
                                      : "times are for decoding, prefill is a separate pool",
              plan_table(best, o.top + 1, q).c_str(), says.c_str());
  std::fputs(sensitivity_text(sensitive, q.objective).c_str(), stdout);
  if (measured) std::printf("\n%s", measured_text(*measured, q).c_str());
}

/// Writes what --emit asks for, of a design that meets the limits. Returns the exit code.
int emit(const scheduler::plan_row& best, const scheduler::model_shape& model,
         const plan_options& o) {
  if (!best.ok()) {
    if (!o.emit.empty()) print_error("--emit: nothing was written: no design meets the limits", "");
    return exit_failure;
  }
  if (!o.emit.empty()) {
    std::error_code failure;
    std::filesystem::create_directories(o.emit, failure);
    save(std::filesystem::path{o.emit} / "lamella.yaml", plan_yaml(best, model, o));
    save(std::filesystem::path{o.emit} / "kubernetes.yaml", plan_manifest(best, model, o));
  }
  return exit_success;
}

} // namespace

int plan_command(const plan_options& o) {
  if (!o.model_path.empty() && o.emit.empty())
    throw command_error{exit_usage, "--model-path: requires --emit",
                        "add --emit DIR; the planner itself takes shapes from --model"};
  const auto c = constants_of(o.constants);
  const auto q = question_of(o, c);
  const scheduler::cost_model cost{model_named(load_models(o.models), o.model), c};
  std::optional<scheduler::served_profile> profile;
  if (!o.profile.empty()) profile = load_served_profile(o.profile);
  const auto trace = load_trace(o.trace);
  const auto measured = plan_of_profile(o, profile, q, trace);
  const auto w = scheduler::workload_of(trace);
  const auto designs = designs_for(q, cost, o);
  const plan_search search{o, q, cost, trace};
  const auto rows = search.estimate(designs, w);
  const auto best = search.finish(search.narrow(rows));
  const auto says = scheduler::verdict(best, q);
  const auto sensitive = scheduler::sensitivities(best.front(), q, cost, w);
  if (o.json)
    std::fputs(plan_json(best, says, sensitive, measured, o).c_str(), stdout);
  else
    print_answer(best, designs.size(), says, sensitive, measured, q, o);
  if (!o.svg.empty()) {
    auto all = best;
    all.insert(all.end(), rows.begin(), rows.end());
    save(o.svg, scheduler::frontier_svg(all));
  }
  return emit(best.front(), cost.model(), o);
}

run_function setup_plan(CLI::App& app) {
  auto o = std::make_shared<plan_options>();
  const auto word = [&](const char* flag, std::string& to, const char* what, const char* type) {
    return app.add_option(flag, to, what)->type_name(type)->capture_default_str();
  };
  const auto count = [&](const char* flag, uint32_t& to, const char* what, uint32_t most) {
    return app.add_option(flag, to, what)
        ->type_name("N")
        ->check(CLI::Range(1u, most))
        ->capture_default_str();
  };
  word("--model", o->model, "Model of the table", "NAME");
  word("--models", o->models, "Another table of models", "FILE");
  word("--trace", o->trace, "Trace by name or file", "TRACE");
  word("--menu", o->menu, "Devices to choose from", "DEVICE,...");
  word("--hardware", o->hardware, "Another table of devices", "FILE");
  app.add_option("--slo", o->slo, "Limits: tbt|ttft|e2e, p50|p90|p99, ms")
      ->type_name("METRIC:QUANTILE:MS");
  app.add_option("--rate", o->rate,
                 "Target rate in requests per second (default: maximum throughput)")
      ->type_name("R")
      ->check(CLI::Range(1e-6, 1e6));
  app.add_option("--budget", o->budget,
                 "Maximum dollars per hour; for throughput, spent on copies of a design")
      ->type_name("USD")
      ->check(CLI::Range(1e-6, 1e9));
  app.add_option("--power-budget", o->power_budget, "Maximum watts, spent likewise")
      ->type_name("W")
      ->check(CLI::Range(1e-3, 1e9));
  app.add_option("--objective", o->objective, "Objective to optimise")
      ->check(CLI::IsMember({"cost", "power", "throughput"}))
      ->capture_default_str();
  word("--prefill", o->prefill,
       "Prefill devices of each copy, or beside (on decode devices); none: KV arrives computed",
       "COUNTxDEVICE");
  count("--prefill-servers", o->prefill_servers,
        "Servers that the prefill devices are divided over", 4096);
  count("--devices-max", o->devices_max, "Maximum devices of one copy of a design", 256);
  count("--batches-max", o->batches_max, "Maximum concurrent batches of a design", 16);
  count("--stages-max", o->stages_max, "Maximum pipeline-parallel stages of a replica or server",
        64);
  count("--top", o->top, "Designs simulated on the whole trace", 200);
  app.add_option("--threads", o->threads, "Threads (all)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1024u));
  word("--host-overhead", o->host_overhead, "equal, or ms per iteration, us per request", "MS,US");
  app.add_option("--constant", o->constants, "Override a constant of the cost models")
      ->type_name("NAME=VALUE");
  word("--profile", o->profile,
       "Also report the measured service: profile of lamella bench decode --profile", "FILE");
  word("--svg", o->svg, "Plot price over TBT here", "FILE");
  word("--emit", o->emit, "Write configuration and manifest of the best design here", "DIR");
  word("--model-path", o->model_path, "With --emit: model file of the configuration", "FILE");
  app.add_flag("--json", o->json, "Write JSON");
  return [o] { return plan_command(*o); };
}

} // namespace lamella::cli
