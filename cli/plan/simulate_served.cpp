/// `lamella simulate --design served`: the service that a profile was measured of.
#include "cli/commands.hpp"
#include "cli/plan/bench_profile.hpp"
#include "cli/plan/simulate.hpp"
#include "scheduler/planner/report.hpp"
#include "scheduler/planner/served_simulator.hpp"

namespace lamella::cli {

std::string describe(const scheduler::served_profile& p) {
  return p.model + " on " + std::to_string(p.threads) + " threads (" + p.kernels + "), "
         + std::to_string(p.limits.seats) + " seats, as measured";
}

other_run run_served(simulate_options& o, const scheduler::request_trace& trace,
                     const std::function<void(const scheduler::iteration_span&)>& on_iteration) {
  using scheduler::fixed;
  const auto profile = load_served_profile(o.profile);
  scheduler::served_options options;
  options.load =
      o.load == "saturated" ? scheduler::load_kind::saturated : scheduler::load_kind::arrivals;
  options.on_iteration = on_iteration;
  options.mixed = o.launches == "mixed";
  if (o.tbt_target_s > 0 && !options.mixed)
    throw command_error{exit_usage, "--tbt-target: no prompt runs in a decode iteration",
                        "add --launches mixed"};
  if (o.stand_backs > 0 && !options.mixed)
    throw command_error{exit_usage, "--stand-backs: no prompt runs in a decode iteration",
                        "add --launches mixed"};
  options.stand_backs = o.stand_backs;
  options.bounds.beside = std::chrono::nanoseconds{static_cast<int64_t>(o.tbt_target_s * 1e9)};
  scheduler::served_result r;
  try {
    r = scheduler::simulate_served(profile, trace, options);
  } catch (const std::invalid_argument& e) {
    throw command_error{exit_configuration, e.what()};
  }
  o.model = profile.model;
  other_run run;
  run.design.text = describe(profile) + (options.mixed ? ", mixed launches" : "");
  run.design.ttft_note = "waiting and prefill included";
  run.design.balance = "decoding runs " + fixed(100 * r.decode_busy, 0) + " % of the time, prompts "
                       + fixed(100 * r.prefill_busy, 0) + " %; " + fixed(100 * r.extrapolated, 0)
                       + " % of decoding is extrapolated beyond the profile";
  run.design.measured = {{"decode_busy", r.decode_busy},
                         {"prefill_busy", r.prefill_busy},
                         {"extrapolated", r.extrapolated}};
  run.result = r;
  return run;
}

} // namespace lamella::cli
