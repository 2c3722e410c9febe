#include "cli/bench/bench_agreement.hpp"

#include "actors/request/service.hpp"
#include "actors/worker/data_plane_port.hpp"
#include "base/json_writer.hpp"
#include "cli/bench/bench_pipeline.hpp"
#include "cli/bench/bench_replay.hpp"
#include "cli/commands.hpp"
#include "cli/data_files.hpp"
#include "cli/log.hpp"
#include "cli/plan/bench_profile.hpp"
#include "cli/plan/simulate.hpp"
#include "scheduler/planner/served_simulator.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lamella::cli {

namespace {

constexpr std::chrono::minutes replay_timeout{30};
/// Ids of a run's requests begin here, far from those that a service gives out at its start.
constexpr uint64_t first_request_id = 1u << 21, requests_most = 1u << 16;

struct played_trace {
  std::string name;
  size_t requests = 0;
  double extrapolated = 0;
  std::vector<agreement_row> rows;
};

void check_same(const scheduler::served_profile& measured, const scheduler::served_profile& running,
                const std::string& file) {
  std::vector<command_error::problem> found;
  for (const auto& x : differences(measured, running))
    found.push_back({"--profile: " + file + " was measured on another service: " + x, ""});
  if (found.empty()) return;
  found.back().hint = "measure this service: lamella bench decode --profile " + file;
  throw command_error{exit_configuration, std::move(found)};
}

double worst_of(const std::vector<played_trace>& all) {
  double worst = 0;
  for (const auto& t : all)
    for (const auto& r : t.rows)
      if (r.target) worst = std::max(worst, std::abs(r.difference()));
  return worst;
}

void print(const played_trace& t, const std::string& load) {
  std::printf(
      "\n%s, %s, %zu requests; %.0f %% of the decode time is extrapolated beyond the profile\n"
      "%-22s %12s %12s %12s\n",
      t.name.c_str(), load.c_str(), t.requests, 100 * t.extrapolated, "", "live", "simulated",
      "difference");
  for (const auto& r : t.rows)
    std::printf("%-22s %12.2f %12.2f %+10.1f %%\n", (r.what + (r.target ? " *" : "")).c_str(),
                r.live, r.simulated, 100 * r.difference());
}

/// How much longer a prompt takes now than when the profile was measured: 1 on a quiet machine.
double machine_drift(pipeline_driver& driver, const scheduler::served_profile& profile) {
  const auto& like_chunk =
      *std::min_element(profile.prefill.begin(), profile.prefill.end(), [&](auto& a, auto& b) {
        return std::abs(a.tokens - profile.limits.chunk_tokens)
               < std::abs(b.tokens - profile.limits.chunk_tokens);
      });
  double sum = 0;
  constexpr int runs = 3;
  for (int i = 0; i < runs; ++i)
    sum += driver.prefill(static_cast<uint32_t>(like_chunk.tokens), false);
  return sum / runs / like_chunk.seconds;
}

std::string as_json(const std::vector<played_trace>& all, const agreement_options& o, double before,
                    double after) {
  json_writer out;
  out.begin_object().member("version", 1).member("profile", o.profile).member("load", o.load);
  out.member("target", agreement_target).member("worst", worst_of(all));
  out.member("drift_before", before).member("drift_after", after);
  out.key("traces").begin_array();
  for (const auto& t : all) {
    out.begin_object().member("trace", t.name).member("requests", uint64_t{t.requests});
    out.member("extrapolated", t.extrapolated).key("rows").begin_array();
    for (const auto& r : t.rows)
      out.begin_object()
          .member("what", r.what)
          .member("live", r.live)
          .member("simulated", r.simulated)
          .member("difference", r.difference())
          .member("target", r.target)
          .end_object();
    out.end_array().end_object();
  }
  out.end_array().end_object();
  return out.take();
}

} // namespace

std::vector<agreement_row> compare(const scheduler::simulation_result& live,
                                   const scheduler::simulation_result& simulated) {
  const auto of = [&](std::string what, bool target, auto number) {
    return agreement_row{std::move(what), number(live), number(simulated), target};
  };
  using result = scheduler::simulation_result;
  constexpr double ms = 1e3;
  return {
      of("tokens/s", true, [](const result& r) { return r.tokens_per_s; }),
      of("mean batch", true, [](const result& r) { return r.mean_batch; }),
      of("TBT mean, ms", true, [](const result& r) { return ms * r.tbt.mean(); }),
      of("TBT p50, ms", false, [](const result& r) { return ms * r.tbt.quantile(0.5); }),
      of("TBT p99, ms", false, [](const result& r) { return ms * r.tbt.quantile(0.99); }),
      of("TTFT mean, ms", false, [](const result& r) { return ms * r.ttft.mean(); }),
      of("TTFT p99, ms", false, [](const result& r) { return ms * r.ttft.quantile(0.99); }),
      of("E2E mean, ms", false, [](const result& r) { return ms * r.e2e.mean(); }),
  };
}

scheduler::request_trace beginning_of(const scheduler::request_trace& trace, uint32_t count,
                                      uint32_t context_tokens) {
  scheduler::request_trace some;
  for (const auto& x : trace) {
    if (some.size() == count) break;
    if (uint64_t{x.prompt_tokens} + x.output_tokens > context_tokens) continue;
    some.push_back(x);
  }
  if (some.empty()) return some;
  const auto start = some.front().arrival_s;
  for (auto& x : some) x.arrival_s -= start;
  return some;
}

int bench_agreement(config::settings settings, const agreement_options& o) {
  configure_log(settings.log, true);
  if (o.requests > settings.limits.queue_requests)
    throw command_error{exit_usage,
                        "--requests: " + std::to_string(o.requests) + " do not fit the queue of "
                            + std::to_string(settings.limits.queue_requests) + " requests",
                        "ask for fewer, or set limits.queue_requests"};
  auto profile = load_served_profile(o.profile);
  std::vector<scheduler::request_trace> traces;
  for (const auto& name : o.traces) {
    traces.push_back(beginning_of(load_trace(name), o.requests, profile.limits.context_tokens));
    if (traces.back().empty())
      throw command_error{exit_configuration,
                          "--trace: no request of " + name + " fits a context of "
                              + std::to_string(profile.limits.context_tokens) + " tokens"};
    traces.back() = with_load(std::move(traces.back()), o.load, o.seed);
  }
  actors::node n{settings, false};
  n.connect_with(actors::data_plane_links(settings.net.listen));
  n.start([](const std::string&, uint64_t, uint64_t) {});
  const auto running = profile_facts(n, settings);
  check_same(profile, running, o.profile);
  profile.limits = running.limits;
  if (!o.json) std::printf("%s\n", n.summary().c_str());
  pipeline_driver driver{n};
  machine_drift(driver, profile); // wakes up
  const auto before = machine_drift(driver, profile);
  const auto load =
      o.load == "saturated" ? scheduler::load_kind::saturated : scheduler::load_kind::arrivals;
  std::vector<played_trace> all;
  for (size_t i = 0; i < traces.size(); ++i) {
    scheduler::served_options options;
    options.load = load;
    options.mixed = settings.batching.launches == config::launches::mixed;
    options.bounds = {settings.batching.prefill_iteration, settings.batching.tbt_target};
    options.stand_backs = settings.batching.stand_backs;
    const auto simulated = scheduler::simulate_served(profile, traces[i], options);
    const auto live =
        replay(n, traces[i], load, first_request_id + i * requests_most, replay_timeout);
    all.push_back(
        {o.traces[i], traces[i].size(), simulated.extrapolated, compare(live, simulated)});
    if (!o.json) print(all.back(), o.load);
    std::fflush(stdout);
  }
  const auto after = machine_drift(driver, profile);
  if (o.json)
    std::printf("%s\n", as_json(all, o, before, after).c_str());
  else
    std::printf(
        "\nprefill takes %.2f times as long as in the profile, %.2f times before the traces; "
        "far from 1: the machine is busy\n* differs by %.1f %% at most, target %.0f %%\n",
        after, before, 100 * worst_of(all), 100 * agreement_target);
  return exit_success;
}

} // namespace lamella::cli
