/// `lamella simulate --autoscale` and `--scaling-trace`: the live autoscaler in a simulated run,
/// and over what another one saw.
#include "base/json_writer.hpp"
#include "cli/commands.hpp"
#include "cli/plan/plan.hpp"
#include "cli/plan/simulate.hpp"
#include "config/nearest.hpp"
#include "scheduler/planner/report.hpp"
#include "scheduler/planner/scaling_replay.hpp"
#include "scheduler/scaling_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

namespace lamella::cli {

namespace {

using scheduler::fixed;
using scheduler::scaled_pool;

constexpr size_t steps_shown = 20;

/// Digits alone, as far as they go; nothing where there are none.
std::optional<uint32_t> count_at(const std::string& text, size_t at, size_t end) {
  uint32_t count = 0;
  const auto* last = text.data() + end;
  const auto [stop, error] = std::from_chars(text.data() + at, last, count);
  if (error != std::errc{} || stop != last || count < 1 || count > 4096) return std::nullopt;
  return count;
}

/// "memory=2..8".
void give_bounds(scheduler::autoscaling& to, const std::string& text) {
  const command_error wrong{exit_usage, "--autoscale: '" + text + "' is not a pool with its bounds",
                            "write WHAT=MIN..MAX, such as memory=2..8, with WHAT compute, memory "
                            "or prefill and counts from 1 to 4096"};
  const auto equals = text.find('='), dots = text.find("..");
  if (equals == std::string::npos || dots == std::string::npos || dots < equals) throw wrong;
  const auto least = count_at(text, equals + 1, dots), most = count_at(text, dots + 2, text.size());
  if (!least || !most || *least > *most) throw wrong;
  for (const auto pool : scheduler::scaled_pools)
    if (text.substr(0, equals) == flag_word(pool)) {
      to.pools[pool] = {*least, *most};
      return;
    }
  throw wrong;
}

/// Changes settings of the autoscaler by NAME=VALUE.
void give_settings(scheduler::scaling_settings& settings, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals);
    const scheduler::scaling_setting_row* found = nullptr;
    std::vector<std::string> known;
    for (const auto& row : scheduler::scaling_setting_rows()) {
      known.emplace_back(row.name);
      if (name == row.name) found = &row;
    }
    if (found == nullptr || equals == std::string::npos) {
      std::string all;
      for (const auto& x : known) all += (all.empty() ? "" : ", ") + x;
      const auto near = config::nearest(name, known);
      throw command_error{exit_usage, "--policy: '" + word + "' is not NAME=VALUE of a setting",
                          near ? "did you mean " + *near + "?" : "settings: " + all};
    }
    scheduler::set(
        settings, *found,
        number_of(word.substr(equals + 1), "--policy " + name, found->most, found->least));
  }
}

std::string step_text(double at_s, const scheduler::scaling_step& x, const char* pool) {
  return fixed(at_s, 1) + " s  " + pool + " " + std::to_string(x.from) + " to "
         + std::to_string(x.to) + ": " + x.reason;
}

/// The pools that there are, with what each should have.
std::string wish_text(const scheduler::by_pool<uint32_t>& wish) {
  std::string text;
  for (const auto pool : scheduler::scaled_pools)
    if (wish[pool] > 0)
      text += (text.empty() ? "" : ", ") + std::string{scheduler::name_of(pool)} + " "
              + std::to_string(wish[pool]);
  return text;
}

void print_table(const std::vector<scheduler::replayed_look>& all) {
  std::string text;
  size_t steps = 0;
  const scheduler::by_pool<uint32_t>* last = nullptr;
  for (const auto& x : all) {
    if (last == nullptr || x.decision.wish != *last)
      text += "wish        " + fixed(x.at.count(), 1) + " s  " + wish_text(x.decision.wish) + "\n";
    last = &x.decision.wish;
    if (!x.decision.step) continue;
    ++steps;
    text += "step        "
            + step_text(x.at.count(), *x.decision.step, scheduler::name_of(x.decision.step->pool))
            + "\n";
  }
  text += "looks       " + std::to_string(all.size()) + ", " + std::to_string(steps) + " steps\n";
  std::fputs(text.c_str(), stdout);
}

void print_json(const std::vector<scheduler::replayed_look>& all) {
  json_writer out;
  out.begin_object().member("version", 1).member("looks", all.size());
  out.key("decisions").begin_array();
  const scheduler::by_pool<uint32_t>* last = nullptr;
  for (const auto& x : all) {
    const bool same = last != nullptr && x.decision.wish == *last;
    last = &x.decision.wish;
    if (same && !x.decision.step) continue;
    out.begin_object().member("at_seconds", x.at.count()).key("wish").begin_object();
    for (const auto pool : scheduler::scaled_pools)
      if ((*last)[pool] > 0) out.member(scheduler::name_of(pool), (*last)[pool]);
    out.end_object();
    if (const auto& step = x.decision.step) {
      out.key("step").begin_object().member("pool", scheduler::name_of(step->pool));
      out.member("from", step->from).member("to", step->to).member("reason", step->reason);
      out.end_object();
    }
    out.end_object();
  }
  std::fputs((out.end_array().end_object().take() + "\n").c_str(), stdout);
}

} // namespace

const char* flag_word(scaled_pool pool) {
  return pool == scaled_pool::model       ? "compute"
         : pool == scaled_pool::attention ? "memory"
                                          : "prefill";
}

scheduler::autoscaling autoscaling_of(const simulate_options& o, bool disaggregated, bool prompts) {
  scheduler::autoscaling a;
  for (const auto& text : o.autoscale) give_bounds(a, text);
  if (a.pools[scaled_pool::attention].most > 0 && !disaggregated)
    throw command_error{exit_usage, "--autoscale: this design has no memory devices",
                        "compute=MIN..MAX scales servers like the others"};
  if (a.pools[scaled_pool::prefill].most > 0 && !prompts)
    throw command_error{exit_usage, "--autoscale: this design has no servers for prompts",
                        "give them: --prefill COUNTxDEVICE"};
  give_settings(a.settings, o.policy);
  for (const auto& word : o.slo) {
    const auto limit = limit_of(word);
    if (limit.quantile != 0.99 || limit.metric == scheduler::latency_metric::e2e)
      throw command_error{exit_usage, "--slo: '" + word + "' is no target of the autoscaler",
                          "it looks at tbt:p99 and ttft:p99"};
    auto& target = limit.metric == scheduler::latency_metric::tbt ? a.tbt_target : a.ttft_target;
    target = scheduler::scaling_seconds{limit.limit_s};
  }
  return a;
}

std::string steps_table(const scheduler::simulation_result& r) {
  auto text = "autoscaled  " + std::to_string(r.steps.size()) + " steps, "
              + fixed(r.device_hours, 2) + " device hours, "
              + fixed(r.most_device_hours - r.device_hours, 2)
              + " less than with the most devices\n";
  for (size_t i = 0; i < std::min(r.steps.size(), steps_shown); ++i)
    text += "            "
            + step_text(r.steps[i].at_s, r.steps[i].step, flag_word(r.steps[i].step.pool)) + "\n";
  if (r.steps.size() > steps_shown)
    text += "            and " + std::to_string(r.steps.size() - steps_shown)
            + " more, which --json has\n";
  return text;
}

int replay_scaling_trace(const simulate_options& o) {
  const auto change = [&](scheduler::scaling_settings& settings) {
    give_settings(settings, o.policy);
  };
  scheduler::scaling_settings defaults;
  change(defaults); // what --policy has wrong comes before what the file has
  std::vector<scheduler::replayed_look> all;
  read_data_file(o.scaling_trace,
                 [&](std::istream& in) { all = scheduler::replay_scaling(in, change); });
  if (o.json)
    print_json(all);
  else
    print_table(all);
  return exit_success;
}

} // namespace lamella::cli
