#include "actors/shared/health.hpp"

#include <fmt/format.h>

namespace lamella::actors {

void health_board::set_progress(const std::string& name, double ratio,
                                std::optional<double> eta_seconds) {
  std::lock_guard lock{mutex_};
  progress_name_ = name;
  progress_ratio_ = ratio;
  progress_eta_ = eta_seconds;
}

void health_board::set_roles(std::vector<role> roles) {
  std::lock_guard lock{mutex_};
  roles_ = std::move(roles);
}

void health_board::set_missing(std::string seats) {
  std::lock_guard lock{mutex_};
  missing_ = std::move(seats);
}

void health_board::set_failing(std::string seats) {
  std::lock_guard lock{mutex_};
  failing_ = std::move(seats);
}

void health_board::set_fenced(std::string seats) {
  std::lock_guard lock{mutex_};
  fenced_ = std::move(seats);
}

void health_board::set_slow(std::string seats) {
  std::lock_guard lock{mutex_};
  slow_ = std::move(seats);
}

std::string health_board::lacking() const {
  std::lock_guard lock{mutex_};
  for (const auto& r : roles_)
    if (!r.serves) return r.name;
  return {};
}

void health_board::set_served() {
  std::lock_guard lock{mutex_};
  served_ = true;
  served_now_.notify_all();
}

bool health_board::wait_served(std::chrono::milliseconds limit) {
  std::unique_lock lock{mutex_};
  return served_now_.wait_for(lock, limit, [this] { return served_; });
}

health_board::verdict health_board::why_not(probe kind, const facts& x) const {
  const auto refuse = [](const char* status, std::string reason) {
    return verdict{false, status, std::move(reason)};
  };
  if (x.where == phase::failed)
    return refuse("unavailable", "the pipeline exceeded its restart limit; exiting");
  if (kind == probe::live) return {};
  if (x.where == phase::loading) return refuse("loading", "the model is being loaded" + x.missing);
  if (x.where == phase::draining) return refuse("draining", "the service is shutting down");
  if (!x.lacks.empty())
    return refuse("unavailable", "role " + x.lacks + " has no worker and no spare" + x.missing);
  if (x.age > beats.max_age())
    return refuse("unavailable", fmt::format("no iteration finished for {} ms", x.age.count()));
  if (kind == probe::ready && x.pause.too_long && !hunting_.load())
    return refuse("unavailable",
                  fmt::format("accepted requests stall for {} ms, new ones are rejected",
                              x.pause.longest.count()));
  if (kind == probe::ready && queue_full_.load()) return refuse("unavailable", "the queue is full");
  return {};
}

std::string health_board::why_degraded(probe kind, const facts& x) {
  if (x.where == phase::loading) return {};
  if (x.pause.too_long)
    return fmt::format("requests have stalled for {} ms, beyond recovery.max_pause_seconds{}",
                       x.pause.longest.count(), x.missing);
  if (x.lost) return "a worker is lost" + x.missing;
  if (x.where == phase::rebuilding) return "the pipeline is being rebuilt";
  if (x.where == phase::serving && x.pause.recovering > 0)
    return fmt::format("requests recovering: {}", x.pause.recovering);
  // Nothing that a load balancer should act on: all is served, later.
  if (kind == probe::health && !x.slow.empty()) return "slow workers: " + x.slow;
  return {};
}

health_board::answer health_board::ask(probe kind,
                                       std::chrono::steady_clock::time_point now) const {
  facts x;
  x.where = phase_.load();
  x.age = std::chrono::duration_cast<std::chrono::milliseconds>(beats.age(now));
  x.lacks = lacking();
  x.pause = pauses.look(now);
  std::string roles, progress = "null";
  {
    std::lock_guard lock{mutex_};
    if (!missing_.empty()) x.missing = ", waiting for workers: " + missing_;
    if (!failing_.empty()) x.missing += ", failing repeatedly: " + failing_;
    if (!fenced_.empty()) x.missing += ", fenced: " + fenced_;
    x.slow = slow_;
    for (const auto& r : roles_) {
      x.lost = x.lost || r.up < r.need || r.spares_up < r.spares;
      roles += fmt::format(R"({}"{}":{{"need":{},"up":{})", roles.empty() ? "" : ",", r.name,
                           r.need, r.up);
      if (r.spares > 0)
        roles += fmt::format(R"(,"spares":{},"spares_up":{})", r.spares, r.spares_up);
      roles += "}";
    }
    if (x.where == phase::loading)
      progress = fmt::format(R"({{"phase":"{}","ratio":{:.3f},"eta_s":{}}})", progress_name_,
                             progress_ratio_,
                             progress_eta_ ? fmt::format("{:.1f}", *progress_eta_) : "null");
  }
  auto found = why_not(kind, x);
  if (found.good)
    if (auto reason = why_degraded(kind, x); !reason.empty())
      found = {true, "degraded", std::move(reason)};
  const auto age = beats.count() == 0 ? std::string{"null"} : std::to_string(x.age.count());
  return {found.good ? 200 : 503,
          fmt::format(R"({{"status":"{}","progress":{},"roles":{{{}}},"last_iteration_age_ms":{},)"
                      R"("reason":{}}})",
                      found.status, progress, roles, age,
                      found.reason.empty() ? "null" : "\"" + found.reason + "\"")};
}

} // namespace lamella::actors
