/// The published results of the four papers, computed by our models and set beside the originals.
#pragma once

#include "scheduler/planner/cost/constants.hpp"
#include "scheduler/planner/cost/trace.hpp"
#include "scheduler/planner/decode_design.hpp"
#include "scheduler/planner/papers/splitwise.hpp"
#include "scheduler/planner/report.hpp"

#include <functional>
#include <string>

namespace lamella::scheduler {

/// Opens one of the data sets that come with the program, by name.
using trace_source = std::function<request_trace(const std::string& name)>;

/// Of everything that the reproductions draw at random.
constexpr uint64_t reproduction_seed = 1;

/// A built-in device; throws std::logic_error where there is none of the name.
const device& device_of(const char* name);

/// The homogeneous baseline of the papers: tensor parallelism, paged KV of 16 slots, and the
/// engine's own limits.
decode_design baseline_design(const device_group& devices, const constants& c);
/// Its host overhead, as published for engines of its time.
host_overhead published_overhead(const constants& c);

/// Lamina 2025, table 5 and figures 10, 11 and 14: twelve cells, each with the baseline's host
/// overhead and with equal overhead on both sides.
report reproduce_lamina(const constants& c, const trace_source& open);

/// Splitwise, section VI: highest rates under the nine SLOs at equal power and equal cost, and what
/// an equal rate costs; `profile` is its table of measurements.
report reproduce_splitwise(const constants& c, const std::vector<profile_row>& profile,
                           const trace_source& open);

/// NEO, section 5: throughput gains of attention on the host's processors.
report reproduce_neo(const constants& c, const trace_source& open);

/// A DGX of the paper (a100-80gb, h100-80gb, h100-80gb-pcap) running one of its models.
machine_kind dgx_machine(const constants& c, const std::vector<profile_row>& profile,
                         const std::string& model, const std::string& hardware);

/// Lamina v1, section 6.1: batch, throughput and cost of homogeneous devices with attention moved
/// to cheap memory devices.
report reproduce_lamina_v1(const constants& c);

} // namespace lamella::scheduler
