/// From words on the command line to a design.
#include "cli/commands.hpp"
#include "cli/plan/simulate.hpp"
#include "config/nearest.hpp"
#include "scheduler/planner/papers/reproduction.hpp"
#include "scheduler/planner/report.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace lamella::cli {

double number_of(const std::string& text, const std::string& flag, double most, double least) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()
      || !(value >= least && value <= most))
    throw command_error{exit_usage, flag + ": '" + text + "' is not a number within "
                                        + scheduler::brief(least) + " to "
                                        + scheduler::brief(most)};
  return value;
}

scheduler::device_group group_of(const std::string& text, const char* flag,
                                 const std::vector<scheduler::device>& all) {
  const auto cross = text.find('x');
  uint32_t count = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + std::min(cross, text.size()), count);
  if (cross == std::string::npos || error != std::errc{} || end != text.data() + cross || count == 0
      || count > 4096)
    throw command_error{exit_usage, std::string{flag} + ": '" + text + "' is not COUNTxDEVICE",
                        "write it like 4xH20, with a count from 1 to 4096"};
  return {device_named(all, text.substr(cross + 1), flag), count};
}

scheduler::constants constants_of(const std::vector<std::string>& overrides) {
  scheduler::constants c;
  for (const auto& word : overrides) {
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals);
    const scheduler::constant_row* found = nullptr;
    std::vector<std::string> known;
    for (const auto& row : scheduler::constant_rows) {
      known.emplace_back(row.name);
      if (row.name == name) found = &row;
    }
    if (found == nullptr || equals == std::string::npos) {
      const auto near = config::nearest(name, known);
      throw command_error{exit_usage, "--constant: '" + word + "' is not NAME=VALUE of a constant",
                          near ? "did you mean " + *near + "?"
                               : "lamella simulate --reproduce lamina prints them all"};
    }
    const auto range = scheduler::range_of(*found);
    c.*found->field =
        number_of(word.substr(equals + 1), "--constant " + name, range.most, range.least);
  }
  return c;
}

scheduler::host_overhead overhead_of(const std::string& text, bool baseline,
                                     const scheduler::constants& c) {
  if (text == "equal") return scheduler::published_overhead(c);
  if (text == "published")
    return baseline ? scheduler::published_overhead(c) : scheduler::host_overhead{};
  const auto comma = text.find(',');
  if (comma == std::string::npos)
    throw command_error{exit_usage, "--host-overhead: '" + text + "' is not an overhead",
                        "write published, equal, or MS,US: ms per iteration, us per request"};
  return {number_of(text.substr(0, comma), "--host-overhead", 1e6) * 1e-3,
          number_of(text.substr(comma + 1), "--host-overhead", 1e6) * 1e-6};
}

scheduler::request_trace with_load(scheduler::request_trace trace, const std::string& load,
                                   uint64_t seed) {
  if (load == "saturated" || load == "trace") return trace;
  double rate = 0, shape = 1;
  const auto* last = load.data() + load.size();
  auto read = std::from_chars(load.data(), last, rate);
  if (read.ec == std::errc{} && read.ptr != last && *read.ptr == ',')
    read = std::from_chars(read.ptr + 1, last, shape);
  constexpr double least = 0.01, most = 100; // of a shape that is still one of arrivals
  if (read.ec != std::errc{} || read.ptr != last || !(rate > 0 && rate <= 1e6)
      || !(shape >= least && shape <= most))
    throw command_error{exit_usage, "--load: '" + load + "' is not a load",
                        "write saturated, trace, a rate in requests per second, or RATE,SHAPE: "
                        "gamma gaps, bursts with a shape from 0.01 to 1, even ones up to 100"};
  return scheduler::with_arrivals(std::move(trace), rate, seed, shape);
}

namespace {

/// "WHAT@SECONDS" with "+SECONDS" until it is repaired.
struct failure_words {
  std::string what;
  double at_s = 0, repair_s = 10;
};
std::optional<failure_words> words_of(const std::string& text, const char* flag) {
  constexpr double longest_s = 1e8;
  const auto at = text.find('@');
  if (at == std::string::npos || at == 0) return std::nullopt;
  const auto plus = text.find('+', at);
  const auto seconds = text.substr(at + 1, plus == std::string::npos ? plus : plus - at - 1);
  failure_words x{text.substr(0, at), number_of(seconds, flag, longest_s)};
  if (plus != std::string::npos) x.repair_s = number_of(text.substr(plus + 1), flag, longest_s);
  return x;
}

} // namespace

scheduler::failure_event failure_of(const std::string& text, bool disaggregated) {
  const auto x = words_of(text, "--failure");
  if (!x || (x->what != "memory" && x->what != "compute"))
    throw command_error{exit_usage, "--failure: '" + text + "' is not a failure",
                        "write memory@SECONDS or compute@SECONDS, and +SECONDS until the spare is "
                        "there (10)"};
  const bool memory = x->what == "memory";
  if (memory && !disaggregated)
    throw command_error{exit_usage, "--failure: '" + text + "': this design has no memory devices",
                        "its devices are compute devices, which hold the KV cache, too"};
  return {x->at_s, memory, x->repair_s};
}

scheduler::scaling_event scaling_of(const std::string& text, bool disaggregated) {
  constexpr int32_t most = 256;
  const auto equals = text.find('=');
  const auto x = words_of(text.substr(0, equals), "--scale");
  int32_t change = 0;
  bool read = false;
  if (x && equals != std::string::npos && equals + 1 < text.size()) {
    const auto* begin = text.data() + equals + 1 + (text[equals + 1] == '+' ? 1 : 0);
    const auto* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(begin, last, change);
    read = error == std::errc{} && end == last && change != 0 && std::abs(change) <= most
           && text.find('+') >= equals;
  }
  if (!read || (x->what != "memory" && x->what != "compute"))
    throw command_error{exit_usage, "--scale: '" + text + "' is not a change",
                        "write memory@SECONDS=+N or compute@SECONDS=-N: devices, or replicas"};
  const bool memory = x->what == "memory";
  if (memory && !disaggregated)
    throw command_error{exit_usage, "--scale: '" + text + "': this design has no memory devices",
                        "compute@SECONDS=+N adds servers like the others"};
  return {x->at_s, memory, change};
}

void give_prefill(scheduler::decode_design& design, const std::string& text, uint32_t servers,
                  const std::vector<scheduler::device>& all) {
  const bool nowhere = text.empty() || text == "none";
  if ((nowhere || text == "beside") && servers > 1)
    throw command_error{exit_usage, "--prefill-servers: there are no devices to divide",
                        "give the prefill devices: --prefill COUNTxDEVICE"};
  design.prefill_beside = text == "beside";
  if (nowhere || design.prefill_beside) return;
  design.prefill = group_of(text, "--prefill", all);
  if (design.prefill.count % servers != 0)
    throw command_error{exit_usage, "--prefill: " + std::to_string(design.prefill.count)
                                        + " devices cannot be divided evenly over "
                                        + std::to_string(servers) + " servers"};
  design.prefill.count /= servers;
  design.prefill_servers = servers;
}

/// Of prompts in decode iterations: where there are none it would say nothing.
double tbt_target_of(const simulate_options& o) {
  if (o.tbt_target_s > 0 && o.prefill != "beside")
    throw command_error{exit_usage, "--tbt-target: no prompt runs in a decode iteration",
                        "add --prefill beside"};
  return o.tbt_target_s;
}

scheduler::machine_failure machine_failure_of(const std::string& text, uint32_t machines) {
  const auto x = words_of(text, "--failure");
  const command_error wrong{exit_usage, "--failure: '" + text + "' is not a failure",
                            "write MACHINE@SECONDS, a machine from 0 to "
                                + std::to_string(machines - 1)
                                + " (those for prompts first), and +SECONDS until it is back (10)"};
  if (!x) throw wrong;
  uint32_t machine = 0;
  const auto* last = x->what.data() + x->what.size();
  const auto [end, error] = std::from_chars(x->what.data(), last, machine);
  if (error != std::errc{} || end != last || machine >= machines) throw wrong;
  return {machine, x->at_s, x->repair_s};
}

void refuse_unused_seed(const std::string& load) {
  if (load != "saturated" && load != "trace") return;
  throw command_error{exit_usage, "--seed: does not apply to --load " + load,
                      "a seed applies to a load in requests per second, such as --load 2"};
}

namespace {

using namespace scheduler;

/// One of `parts` equal parts of a group. Throws command_error 2.
device_group split(device_group group, uint32_t parts, const char* flag,
                   const simulate_options& o) {
  if (parts == 0 || group.count % parts != 0)
    throw command_error{exit_usage, std::string{flag} + ": " + std::to_string(group.count)
                                        + " devices cannot be divided evenly over "
                                        + std::to_string(parts)
                                        + (o.stages > 1 ? " stages of replicas" : " replicas")};
  group.count /= parts;
  return group;
}

/// Another number of NICs than one each; 0: leaves it. Throws command_error 2.
void give_nics(device_group& group, uint32_t nics, uint32_t groups, const char* flag,
               const constants& c) {
  if (nics == 0) return;
  if (group.kind.nic_bandwidth <= 0)
    throw command_error{exit_usage,
                        std::string{flag} + ": the table has no NIC of " + group.kind.name,
                        "give it nic_gbps in a table of your own: --hardware FILE"};
  if (nics % groups != 0)
    throw command_error{exit_usage, std::string{flag} + ": " + std::to_string(nics)
                                        + " NICs cannot be divided evenly over "
                                        + std::to_string(groups) + " replicas"};
  group = with_nics(group, nics / groups, c);
}

decode_design homogeneous_design(const simulate_options& o, const std::vector<device>& all,
                                 const constants& c) {
  const auto group = group_of(o.devices, "--devices", all);
  const auto tp = o.tensor_parallel ? o.tensor_parallel : group.count / o.stages;
  if (tp == 0 || group.count % tp != 0)
    throw command_error{exit_usage, "--tensor-parallel: " + std::to_string(tp) + " does not divide "
                                        + std::to_string(group.count) + " devices"};
  if (group.count / tp % o.stages != 0)
    throw command_error{exit_usage, "--stages: " + std::to_string(group.count) + " devices, "
                                        + std::to_string(tp)
                                        + " in a stage, cannot be divided evenly over "
                                        + std::to_string(o.stages) + " stages"};
  auto d = baseline_design(split(group, group.count / tp, "--devices", o), c);
  d.replicas = group.count / tp / o.stages;
  d.stages = o.stages;
  if (o.kv == "token") d.block_slots = 1;
  d.host = overhead_of(o.host_overhead, true, c);
  give_prefill(d, o.prefill, o.prefill_servers, all);
  d.tbt_target_s = tbt_target_of(o);
  d.prefix_cache_s = o.prefix_cache_s;
  return d;
}

decode_design lamina_design(const simulate_options& o, const std::vector<device>& all,
                            const constants& c) {
  decode_design d;
  const bool off = o.pipeline == "off";
  const bool chosen = o.batches == "auto" || o.pipeline == "auto"; // when the trace is known
  d.batches = chosen ? 2 : static_cast<uint32_t>(number_of(o.batches, "--batches", 256));
  if (d.batches == 0 || (!chosen && std::to_string(d.batches) != o.batches))
    throw command_error{exit_usage,
                        "--batches: '" + o.batches + "' is not a whole number from 1 to 256",
                        "or auto"};
  // One replica in stages, unless told otherwise; else one for each batch but that at attention.
  d.stages = o.stages;
  d.replicas = o.replicas ? o.replicas : o.stages > 1 ? 1 : std::max(1u, d.batches - 1);
  if (chosen) d.batches = d.groups() + 1;
  if (off) d.batches = d.replicas;
  d.compute = split(group_of(o.compute, "--compute", all), d.groups(), "--compute", o);
  d.memory = group_of(o.memory, "--memory", all);
  give_nics(d.compute, o.compute_nics, d.groups(), "--compute-nics", c);
  give_nics(d.memory, o.memory_nics, 1, "--memory-nics", c);
  d.pipeline = off || o.pipeline == "fixed" ? pipeline_kind::fixed : pipeline_kind::rotational;
  d.partition = o.partition == "requests" ? partition_kind::requests : partition_kind::heads;
  d.network = o.network == "host" ? network_kind::host : network_kind::fhbn;
  d.overlap = o.overlap == "on";
  d.host = overhead_of(o.host_overhead, false, c);
  give_prefill(d, o.prefill, o.prefill_servers, all);
  d.tbt_target_s = tbt_target_of(o);
  d.prefix_cache_s = o.prefix_cache_s;
  return d;
}

} // namespace

decode_design design_of(const simulate_options& o, const constants& c) {
  const auto all = load_devices(o.hardware);
  return o.design == "homogeneous" ? homogeneous_design(o, all, c) : lamina_design(o, all, c);
}

} // namespace lamella::cli
