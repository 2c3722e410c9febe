/// `lamella bench agreement`: compares the simulator with this machine.
#pragma once

#include "config/settings.hpp"
#include "scheduler/planner/simulator.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::cli {

struct agreement_options {
  std::string profile;
  std::vector<std::string> traces{"azure_conv_2023", "neo_osc"};
  std::string load = "saturated";
  uint32_t requests = 32; ///< of each trace
  uint64_t seed = 1;
  bool json = false;
};

/// One number of a run, measured and predicted.
struct agreement_row {
  std::string what;
  double live = 0, simulated = 0;
  bool target = false; ///< it must agree within agreement_target
  /// (simulated - live) / live
  double difference() const { return live > 0 ? simulated / live - 1 : 0; }
};

/// Target for batch, time between tokens and throughput.
constexpr double agreement_target = 0.15;

std::vector<agreement_row> compare(const scheduler::simulation_result& live,
                                   const scheduler::simulation_result& simulated);

/// The first `count` requests of a trace that fit the context; the first arrives at time 0. Fewer
/// where there are no more.
scheduler::request_trace beginning_of(const scheduler::request_trace& trace, uint32_t count,
                                      uint32_t context_tokens);

/// Plays every trace on the real model in this process, without HTTP, and on the simulator with the
/// profile; prints both. Returns exit_success however well they agree. Throws command_error 78 when
/// the profile is of another service than this one.
int bench_agreement(config::settings settings, const agreement_options& options);

} // namespace lamella::cli
