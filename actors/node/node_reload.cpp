#include "actors/machine/seat_groups.hpp"
#include "actors/node/node_impl.hpp"
#include "actors/node/roster.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/shared/events.hpp"
#include "actors/shared/explain.hpp"

#include <spdlog/spdlog.h>

#include <fmt/format.h>

#include <algorithm>

namespace lamella::actors {
namespace {

/// Until MEMBERSHIP has refused or begun a change of a pool's size.
constexpr caf::timespan resize_timeout = std::chrono::seconds{5};

constexpr const char* earlier_change =
    "the change that an earlier reload asked for is still under way";

/// What is wrong with a configuration that was read again, or with what it would make of the one in
/// force.
std::vector<std::string> problems_of(const config::loaded& made,
                                     const config::live_change& change) {
  std::vector<std::string> found;
  const auto add = [&](const std::string& what, const std::string& hint) {
    found.push_back(hint.empty() ? what : what + " (" + hint + ")");
  };
  for (const auto& x : made.problems) add(x.text(), x.hint);
  if (found.empty()) // those of settings that cannot be read say nothing
    for (const auto& x : change.violations)
      add(x.keys.front() + ": " + x.message, "with what only a restart would change: " + x.hint);
  return found;
}

/// `min` and `max` of all pools and cells.
std::vector<uint32_t> bounds_of(const config::settings& x) {
  std::vector<uint32_t> result;
  const auto add = [&](const config::pool_settings& pool) {
    result.push_back(pool.least);
    result.push_back(pool.most);
  };
  add(x.pools.model);
  add(x.pools.attention);
  add(x.pools.prefill);
  for (const auto& [name, cell] : x.pools.attention.cells) add(cell);
  return result;
}

/// A problem that passes by itself.
std::vector<std::string> not_now(reload_report& report, std::string why) {
  report.passing = true;
  return {std::move(why)};
}

/// What MEMBERSHIP refused of one change.
std::vector<std::string> refused(reload_report& report, const std::string& key, const caf::error& e,
                                 const std::string& why) {
  report.passing = passes_by_itself(e, why);
  return {key + ": " + why};
}

/// Adds what differs to the report, whose pending keys are known, and logs it.
void tell(const std::vector<config::difference>& changes, reload_report& report) {
  for (const auto& x : changes) {
    const bool pending = std::ranges::count(report.pending, x.key) > 0;
    if (!pending) (x.needs_restart ? report.needs_restart : report.applied).push_back(x.key);
    spdlog::info("configuration key={} before={} after={} {}", x.key, x.before, x.after,
                 x.needs_restart ? "needs a restart"
                 : pending       ? "pending"
                                 : "applied");
  }
}

} // namespace

void node::impl::take_sizes_back() {
  for (const auto& x : resizes->take_failed()) take_back(in_force, x);
}

/// Each of the sizes on the way.
std::string node::impl::why_not_sizes(const config::settings& known, const config::settings& there,
                                      const std::vector<resize_wish>& wishes) {
  auto sizes = configured_sizes(known);
  for (const auto& x : wishes) {
    sizes = with_wish(sizes, x, known.pools.attention);
    if (auto why = control->why_not(sizes, there); !why.empty())
      return keys_of(x).front() + ": " + why;
  }
  return {};
}

std::string node::impl::why_no_device_of(const config::attention_pool_settings& cell) {
  if (cell.placement == config::placement::remote) return {};
  if (config::is_cuda(cell.device))
    if (auto why = why_no_device(cell.device); !why.empty()) return why;
  if (cell.placement == config::placement::local) return {};
  try {
    const auto device = parts->devices->get(cell.device, "host/kv");
    return refuse_attention(*device, attention_of(options, model.program->spec));
  } catch (const std::runtime_error& e) {
    return e.what();
  }
}

/// MEMBERSHIP knows them afterwards, and so does `in_force`, whatever becomes of the sizes.
caf::error node::impl::take_cells(const config::settings& known, const membership_actor& whom,
                                  const cells_ptr& roster, std::atomic<bool>& settled) {
  caf::scoped_actor self{system};
  caf::error problem;
  self->request(whom, resize_timeout, roster)
      .receive([](bool) {}, [&](const caf::error& e) { problem = e; });
  // An answer that was late is one all the same.
  if (problem && !settled.exchange(true)) return problem;
  in_force = known;
  watch_load(known);
  return {};
}

/// Of the cells that are new or get other settings.
std::string node::impl::why_no_device_of(const config::live_change& change) {
  const auto& cells = change.value.pools.attention.cells;
  for (const auto& name : change.cells)
    if (const auto why = why_no_device_of(cells.at(name)); !why.empty())
      return fmt::format("pools.attention.cells.{}.device: {}", name, why);
  return {};
}

std::vector<std::string> node::impl::resize_pools(const config::live_change& change,
                                                  reload_report& report) {
  const auto& now = change.value;
  const std::set<std::string> taken{change.cells.begin(), change.cells.end()};
  const auto there = with_cells(*parts->options.now(), now, taken);
  auto known = with_cells(in_force, now, taken);
  for (const auto& name : taken) known.pools.attention.cells.at(name).members = 0;
  auto wishes = resizes_between(known, now);
  if (!resizes->under_way()) empty_cells(wishes, change.gone);
  if (wishes.empty() && taken.empty()) return {};
  if (auto why = why_no_device_of(change); !why.empty()) return {why}; // may take seconds
  const auto first =
      wishes.empty() ? "pools.attention.cells: " : keys_of(wishes.front()).front() + ": ";
  resizer_config c;
  c.outcomes = resizes;
  const auto settled = std::make_shared<std::atomic<bool>>(false);
  cells_ptr roster;
  {
    std::lock_guard lock{end_mutex};
    if (ending_node || drained) return not_now(report, "the service is draining");
    if (health->where() == health_board::phase::loading)
      return not_now(report, first + not_started);
    if (resizes->under_way()) return not_now(report, first + earlier_change);
    if (auto why = why_not_sizes(known, there, wishes); !why.empty()) return {why};
    c.members = parts->members;
    if (!taken.empty()) roster = control->roster_with(there, taken, settled);
  }
  if (roster)
    if (const auto why = take_cells(known, c.members, roster, *settled))
      return refused(report, "pools.attention.cells", why, explain(system, why));
  caf::scoped_actor self{system};
  for (const auto& x : wishes) {
    const auto take = [&] {
      c.wishes.push_back(x);
      for (const auto& key : keys_of(x))
        if (std::ranges::count(report.pending, key) == 0) report.pending.push_back(key);
    };
    if (!c.wishes.empty()) { // one change at a time: RESIZER asks for it after that
      take();
      continue;
    }
    caf::error why;
    self->request(c.members, resize_timeout, question_of(x))
        .receive(
            [&](const pool_change& answer) {
              if (answer.state == "under way") take();
            },
            [&](const caf::error& e) { why = e; });
    if (why) return refused(report, keys_of(x).front(), why, explain(system, why));
  }
  if (c.wishes.empty()) return {};
  resizes->begin();
  system.spawn(resizer, std::move(c));
  return {};
}

void node::impl::take_bounds(const config::live_change& change) {
  const auto& now = change.value;
  if (change.gone.empty() && bounds_of(in_force) == bounds_of(now)) return;
  auto followed = now; // the load is not to bring them back
  for (const auto& name : change.gone) followed.pools.attention.cells.erase(name);
  watch_load(followed);
  // Pools of other hosts follow their workers within the bounds that they have there.
  for (const auto& group : seat_groups(now))
    if (const auto& pool = pool_of(now, group); pool.placement == config::placement::remote)
      caf::anon_send(control->members(), pool_bounds{std::string{scheduler::to_string(group.role)},
                                                     pool.least, pool.most});
}

reload_report node::impl::reload() {
  std::lock_guard turn{reload_turn};
  reload_report report;
  const auto refuse = [&](std::vector<std::string> problems) {
    for (const auto& x : problems) tell(event_kind::config_refused, {{"reason", x}});
    metrics->config_reloaded(false);
    report.problems = std::move(problems);
    return report;
  };
  try {
    if (drained) return refuse(not_now(report, "the service is draining"));
    take_sizes_back();
    const auto made = configuration();
    const auto change = config::take_live(in_force, made.value);
    if (auto problems = problems_of(made, change); !problems.empty())
      return refuse(std::move(problems));
    const auto& now = change.value;
    new_rules rules{rules_of(now), net::api_keys::from_option(now.http.api_keys_file),
                    net::api_keys::from_option(now.admin.api_keys_file)};
    // Other names of these files need a restart; those of now may be gone then.
    const auto& http_made = made.value.http;
    auto identity = http_made.tls_certificate == options.http.tls_certificate
                            && http_made.tls_key == options.http.tls_key
                        ? identity_of(options)
                        : nullptr;
    report.api_keys = rules.keys.size();
    report.admin_keys = rules.admin_keys.size();
    if (auto problems = resize_pools(change, report); !problems.empty())
      return refuse(std::move(problems));
    // No file is read and nothing fails from here on.
    std::lock_guard lock{end_mutex};
    if (ending_node || drained) return refuse(not_now(report, "the service is draining"));
    // First the level of what is logged of it.
    on_reload(now);
    for (const auto& x : made.warnings) spdlog::warn("{}", x);
    tell(change.changes, report);
    drain_limit = now.shutdown.drain;
    health->beats.set_max_age(now.health.iteration_max_age);
    health->pauses.set_max_pause(now.recovery.max_pause);
    // Requests that are there keep their deadline: the time for an answer never falls.
    longest_deadline = std::max(longest_deadline, now.limits.request_deadline);
    public_memory.set_limit(now.bodies_bytes());
    admin_memory.set_limit(now.bodies_bytes());
    if (exporter) trace_by(now.traces);
    http->set_answer_time(answer_time(longest_deadline));
    if (identity) http->set_identity("public", std::move(identity));
    caf::anon_send(front, std::move(rules));
    take_bounds(change);
    in_force = now;
  } catch (const std::exception& e) {
    return refuse({e.what()});
  }
  metrics->config_reloaded(true);
  tell(event_kind::config_reloaded, {{"applied", report.applied.size()},
                                     {"pending", report.pending.size()},
                                     {"needs_restart", report.needs_restart.size()},
                                     {"api_keys", report.api_keys},
                                     {"admin_keys", report.admin_keys}});
  return report;
}

void node::reload_from(configuration_source source,
                       std::function<void(const config::settings&)> taken) {
  impl_->configuration = std::move(source);
  impl_->on_reload = std::move(taken);
}

reload_report node::reload() { return impl_->reload(); }

std::chrono::milliseconds node::drain_limit() const { return impl_->drain_limit.load(); }

} // namespace lamella::actors
