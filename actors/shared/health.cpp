#include "actors/shared/health.hpp"

#include <fmt/format.h>

namespace lamella::actors {

void health_board::set_progress(const std::string& name, double ratio, double eta_seconds) {
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

health_board::answer health_board::ask(probe kind,
                                       std::chrono::steady_clock::time_point now) const {
  const auto where = phase_.load();
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(beats.age(now));
  const char* status = "ok";
  std::string reason, missing, slow;
  const auto lacks = lacking();
  const auto pause = pauses.look(now);
  bool lost = false;
  {
    std::lock_guard lock{mutex_};
    if (!missing_.empty()) missing = ", waiting for workers: " + missing_;
    if (!failing_.empty()) missing += ", failing repeatedly: " + failing_;
    slow = slow_;
    for (const auto& r : roles_) lost = lost || r.up < r.need || r.spares_up < r.spares;
  }
  bool good = true;
  const auto refuse = [&](const char* word, std::string why) {
    status = word;
    reason = std::move(why);
    good = false;
  };
  if (where == phase::failed) {
    refuse("unavailable", "the pipeline exceeded its restart limit; exiting");
  } else if (kind != probe::live) {
    if (where == phase::loading) {
      refuse("loading", "the model is being loaded" + missing);
    } else if (where == phase::draining) {
      refuse("draining", "the service is shutting down");
    } else if (!lacks.empty()) {
      refuse("unavailable", "role " + lacks + " has no worker and no spare" + missing);
    } else if (age > beats.max_age()) {
      refuse("unavailable", fmt::format("no iteration finished for {} ms", age.count()));
    } else if (kind == probe::ready && pause.too_long && !hunting_.load()) {
      refuse("unavailable", fmt::format("accepted requests stall for {} ms, new ones are rejected",
                                        pause.longest.count()));
    } else if (kind == probe::ready && queue_full_.load()) {
      refuse("unavailable", "the queue is full");
    }
  }
  if (good && where != phase::loading && pause.too_long) {
    status = "degraded";
    reason = fmt::format("requests have stalled for {} ms, beyond recovery.max_pause_seconds{}",
                         pause.longest.count(), missing);
  } else if (good && where != phase::loading && lost) {
    status = "degraded";
    reason = "a worker is lost" + missing;
  } else if (good && where == phase::rebuilding) {
    status = "degraded";
    reason = "the pipeline is being rebuilt";
  } else if (good && where == phase::serving && pause.recovering > 0) {
    status = "degraded";
    reason = fmt::format("requests recovering: {}", pause.recovering);
  } else if (good && kind == probe::health && !slow.empty()) {
    // Nothing that a load balancer should act on: all is served, later.
    status = "degraded";
    reason = "slow workers: " + slow;
  }
  std::string roles, progress = "null";
  {
    std::lock_guard lock{mutex_};
    for (const auto& r : roles_) {
      roles += fmt::format(R"({}"{}":{{"need":{},"up":{})", roles.empty() ? "" : ",", r.name,
                           r.need, r.up);
      if (r.spares > 0)
        roles += fmt::format(R"(,"spares":{},"spares_up":{})", r.spares, r.spares_up);
      roles += "}";
    }
    if (where == phase::loading)
      progress = fmt::format(R"({{"phase":"{}","ratio":{:.3f},"eta_s":{:.1f}}})", progress_name_,
                             progress_ratio_, progress_eta_);
  }
  const auto age_text = beats.count() == 0 ? std::string{"null"} : std::to_string(age.count());
  return {good ? 200 : 503,
          fmt::format(R"({{"status":"{}","progress":{},"roles":{{{}}},"last_iteration_age_ms":{},)"
                      R"("reason":{}}})",
                      status, progress, roles, age_text,
                      reason.empty() ? "null" : "\"" + reason + "\"")};
}

} // namespace lamella::actors
