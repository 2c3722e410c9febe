/// Which design serves a workload for the least money (L-M33, S-M20, S-M21).
#pragma once

#include "scheduler/planner/simulator.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lamella::scheduler {

enum class latency_metric : uint8_t { tbt, ttft, e2e };

/// A share `quantile` of the times must not exceed `limit_s`.
struct latency_limit {
  latency_metric metric = latency_metric::tbt;
  double quantile = 0.99;
  double limit_s = 0.1;
};

/// The objective: lowest price per token, lowest power per token, or highest throughput.
enum class plan_objective : uint8_t { cost, power, throughput };

struct plan_question {
  std::vector<device> menu;
  std::vector<latency_limit> limits;
  plan_objective objective = plan_objective::cost;
  double rate = 0;             ///< requests per second to be served; 0: maximum throughput
  uint32_t devices_max = 16;   ///< of one copy of a design
  double usd_per_hour_max = 0; ///< of all copies; 0: no limit
  double watts_max = 0;        ///< of all copies; 0: no limit
  uint32_t batches_max = 4;
  uint32_t stages_max = 1; ///< of a replica or server (V-M04)
  host_overhead host;      ///< of every design alike
  device_group prefill;    ///< one of the prefill servers of each copy
  uint32_t prefill_servers = 0;
  bool prefill_beside = false; ///< prefill runs on the decode devices
  /// Whether there is any limit to meet.
  bool limited() const { return !limits.empty() || usd_per_hour_max > 0 || watts_max > 0; }
};

/// Average load of the trace.
struct workload {
  double context = 0; ///< tokens a request holds while it decodes, per generated token
  double prompt = 0, output = 0;
};
workload workload_of(const request_trace& trace);

/// The limit that is exceeded by the largest factor, as text; empty when all are met.
struct limit_miss {
  double factor = 1;
  latency_metric metric = latency_metric::tbt;
  std::string text;
};
limit_miss worst_miss(const distribution& tbt, const distribution& ttft, const distribution& e2e,
                      const std::vector<latency_limit>& limits);

/// One design with its performance.
struct plan_row {
  decode_design design;
  uint32_t seats = 0;  ///< batch limit per batch; smaller than memory allows where TBT asks for it
  uint32_t copies = 1; ///< of the whole design, for the rate, or all that the budget pays for
  double tokens_per_s = 0; ///< of one copy, full
  double batch = 0;
  distribution tbt, ttft, e2e; ///< simulated; one sample of the mean where only estimated
  bool simulated = false;
  std::string bound;  ///< its bottleneck
  std::string misses; ///< the limit that it exceeds and by how much; empty when it meets all
  double miss = 0;    ///< by which factor; infinite where no number says how near it is
  double usd_per_hour() const { return design.usd_per_hour() * copies; }
  double watts() const { return design.watts() * copies; }
  double usd_per_mtok = 0;
  double joules_per_token = 0;
  bool ok() const { return misses.empty(); }
};

/// All designs of the menu that can run the model at all: homogeneous ones with 1 to 8 devices in
/// each of their stages (1, 2, 4, …), and disaggregated ones, with replicas or one replica in
/// stages, over devices x a x b x n x partition x NICs: one for each device, fewer that devices
/// share, or more where a device's link takes more than its NIC (L-M06). Left out are those in
/// which one side has more NICs than the other can ever feed.
std::vector<decode_design> enumerate_designs(const plan_question& q, const cost_model& cost);

/// Closed forms at the mean context: the largest batch that memory and TBT allow.
plan_row estimate(const decode_design& design, const plan_question& q, const cost_model& cost,
                  const workload& w);

/// The same by simulation: full for its throughput, then at its share of the rate for the limits.
/// Lowers the seats, or adds copies, a few times when a limit is missed.
plan_row evaluate(const plan_row& guess, const plan_question& q, const cost_model& cost,
                  const request_trace& trace);

/// Marks a row whose devices share too few NICs for the KV of its prompts, which comes over those
/// of the devices that keep it (L-M27): at full throughput, or of a copy's share of the rate.
void check_shared_nics(plan_row& row, const plan_question& q, const cost_model& cost,
                       const workload& w);

/// Marks a row that costs more, or draws more power, than the question allows.
void check_budget(plan_row& row, const plan_question& q);

/// Copies of a design when no rate is asked for: one, or, where the most tokens are wanted for a
/// budget, as many as it pays for (S-M21).
uint32_t copies_within(const plan_question& q, const decode_design& design);

/// Of the designs that differ in their NICs only, the first of `ranked`.
std::vector<plan_row> best_of_nics(const std::vector<plan_row>& ranked);

/// Best first: designs that meet all limits by the objective, then the others, nearest miss first.
void rank(std::vector<plan_row>& rows, const plan_question& q);

/// How much what a token takes of what is saved (money, power, time) changes with a constant, in
/// percent.
struct sensitivity {
  std::string constant;
  double from = 0, to = 0; ///< a fifth larger, or the largest that it can be
  double percent = 0;
  std::string refused; ///< instead: why the design cannot be with it
};
/// Of a full design, whatever the rate. Largest first; measured constants are left out.
std::vector<sensitivity> sensitivities(const plan_row& row, const plan_question& q,
                                       const cost_model& cost, const workload& w);

/// "Do not disaggregate: ..." or by how much it pays; ranked rows.
std::string verdict(const std::vector<plan_row>& rows, const plan_question& q);

/// Mean TBT against price of all rows, the frontier as a line.
std::string frontier_svg(const std::vector<plan_row>& rows);

} // namespace lamella::scheduler
