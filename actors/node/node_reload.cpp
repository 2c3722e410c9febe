#include "actors/node/node_impl.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {
namespace {

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

} // namespace

reload_report node::impl::reload() {
  std::lock_guard turn{reload_turn};
  reload_report report;
  const auto refuse = [&](std::vector<std::string> problems) {
    for (const auto& x : problems) spdlog::error("configuration not reloaded problem=\"{}\"", x);
    metrics->config_reloaded(false);
    report.problems = std::move(problems);
    return report;
  };
  try {
    if (drained) return refuse({"the service is draining"});
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
    // No file is read and nothing fails from here on.
    std::lock_guard lock{end_mutex};
    if (ending_node || drained) return refuse({"the service is draining"});
    // First the level of what is logged of it.
    on_reload(now);
    for (const auto& x : made.warnings) spdlog::warn("{}", x);
    for (const auto& x : change.changes) {
      (x.needs_restart ? report.needs_restart : report.applied).push_back(x.key);
      spdlog::info("configuration key={} before={} after={} {}", x.key, x.before, x.after,
                   x.needs_restart ? "needs a restart" : "applied");
    }
    drain_limit = now.shutdown.drain;
    health->beats.set_max_age(now.health.iteration_max_age);
    health->pauses.set_max_pause(now.recovery.max_pause);
    // Requests that are there keep their deadline: the time for an answer never falls.
    longest_deadline = std::max(longest_deadline, now.limits.request_deadline);
    bodies->set_limit(now.bodies_bytes());
    http->set_answer_time(answer_time(longest_deadline));
    if (identity) http->set_identity("public", std::move(identity));
    caf::anon_send(front, std::move(rules));
    in_force = now;
  } catch (const std::exception& e) {
    return refuse({e.what()});
  }
  metrics->config_reloaded(true);
  spdlog::info("configuration reloaded applied={} needs_restart={} api_keys={} admin_keys={}",
               report.applied.size(), report.needs_restart.size(), report.api_keys,
               report.admin_keys);
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
