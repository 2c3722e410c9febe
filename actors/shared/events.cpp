#include "actors/shared/events.hpp"

#include "base/environment.hpp"
#include "base/utf8.hpp"

#include <fmt/chrono.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

namespace lamella::actors {

namespace {

using spdlog::level::level_enum;

struct row {
  event_kind kind;
  std::string_view name, words; ///< of the API, and of the log
  level_enum level;
  std::string_view subject; ///< the field that is the subject; empty: the service
};

constexpr row rows[] = {
    {event_kind::worker_joined, "worker_joined", "worker joined", level_enum::info, "seat"},
    {event_kind::worker_draining, "worker_draining", "worker draining", level_enum::info, "seat"},
    {event_kind::worker_left, "worker_left", "worker sent away", level_enum::info, "seat"},
    {event_kind::worker_lost, "worker_lost", "worker lost", level_enum::warn, "seat"},
    {event_kind::worker_refused, "worker_refused", "worker refused", level_enum::warn, "worker"},
    {event_kind::worker_fenced, "worker_fenced", "worker fenced", level_enum::warn, "seat"},
    {event_kind::worker_reachable, "worker_reachable", "worker reachable again", level_enum::warn,
     "seat"},
    {event_kind::worker_slow, "worker_slow", "worker slow", level_enum::warn, "seat"},
    {event_kind::worker_recovered, "worker_recovered", "worker recovered", level_enum::warn,
     "seat"},
    {event_kind::worker_exited, "worker_exited", "worker process exited", level_enum::warn,
     "worker"},
    {event_kind::worker_failing, "worker_failing", "worker process keeps failing", level_enum::err,
     "worker"},
    {event_kind::epoch_opened, "epoch_opened", "epoch open", level_enum::info, "epoch"},
    {event_kind::epoch_taken_over, "epoch_taken_over", "epoch taken over", level_enum::info,
     "epoch"},
    {event_kind::epoch_dropped, "epoch_dropped", "epoch dropped", level_enum::warn, "epoch"},
    {event_kind::epoch_closed, "epoch_closed", "epoch closed", level_enum::info, "epoch"},
    {event_kind::pipeline_chosen, "pipeline_chosen", "pipeline chosen", level_enum::info,
     "pipeline"},
    {event_kind::pool_resizing, "pool_resizing", "pool resizing", level_enum::info, "pool"},
    {event_kind::pool_resized, "pool_resized", "pool resized", level_enum::info, "pool"},
    {event_kind::pool_rolled_back, "pool_rolled_back", "pool not resized", level_enum::err, "pool"},
    {event_kind::pool_refused, "pool_refused", "pool change refused", level_enum::warn, "pool"},
    {event_kind::pool_short, "pool_short", "pool serves with fewer members", level_enum::warn,
     "pool"},
    {event_kind::pool_wish, "pool_wish", "pool wish", level_enum::info, "pool"},
    {event_kind::pool_autoscaling, "pool_autoscaling", "autoscaling", level_enum::info, "pool"},
    {event_kind::kv_move_begun, "kv_move_begun", "KV move begun", level_enum::info, "epoch"},
    {event_kind::kv_moved, "kv_moved", "KV moved", level_enum::info, "epoch"},
    {event_kind::kv_move_aborted, "kv_move_aborted", "KV move aborted", level_enum::warn, "epoch"},
    {event_kind::kv_not_moved, "kv_not_moved", "KV is computed again", level_enum::warn, ""},
    {event_kind::config_reloaded, "config_reloaded", "configuration reloaded", level_enum::info,
     ""},
    {event_kind::config_refused, "config_refused", "configuration not reloaded", level_enum::err,
     ""},
    {event_kind::service_restarting, "service_restarting", "restarting after a fault",
     level_enum::err, "subtree"},
    {event_kind::service_failed, "service_failed", "restart limit exceeded", level_enum::critical,
     "subtree"},
    {event_kind::service_draining, "service_draining", "draining", level_enum::info, ""},
};

const row& row_of(event_kind kind) {
  return *std::find_if(std::begin(rows), std::end(rows),
                       [&](const row& x) { return x.kind == kind; });
}

bool needs_quotes(const event_field& x) {
  if (x.is_number) return false;
  return x.name == "reason" || x.name == "how" || x.value.empty()
         || x.value.find(' ') != std::string::npos;
}

/// The beginning of a text, without half a character at its end.
void shorten(std::string& text, size_t most) {
  if (text.size() <= most) return;
  size_t end = 0;
  while (end < most) {
    const auto next = end + decode_utf8(text, end).bytes;
    if (next > most) break;
    end = next;
  }
  text.resize(end);
}

} // namespace

std::string_view name_of(event_kind kind) { return row_of(kind).name; }

std::string event::subject() const {
  const auto name = row_of(kind).subject;
  const auto found = std::ranges::find(fields, name, &event_field::name);
  if (found == fields.end()) return "service";
  return name == "epoch" ? "epoch " + found->value : found->value;
}

std::string event::text() const {
  std::string line{row_of(kind).words};
  for (const auto& x : fields)
    line += needs_quotes(x) ? fmt::format(" {}=\"{}\"", x.name, x.value)
                            : fmt::format(" {}={}", x.name, x.value);
  return line;
}

std::string utc_text(std::chrono::system_clock::time_point at) {
  const auto whole = std::chrono::floor<std::chrono::milliseconds>(at);
  const auto ms = whole.time_since_epoch().count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(whole)), ms);
}

void write_event(json_writer& out, const event& x) {
  out.begin_object()
      .member("number", x.number)
      .member("time", utc_text(x.at))
      .member("kind", name_of(x.kind))
      .member("subject", x.subject())
      .member("text", x.text())
      .key("fields")
      .begin_object();
  for (const auto& field : x.fields) {
    out.key(field.name);
    if (field.is_number)
      out.raw(field.value);
    else
      out.value(field.value);
  }
  out.end_object().end_object();
}

void event_log::add(event x) {
  if (x.fields.size() > fields_max) x.fields.erase(x.fields.begin() + fields_max, x.fields.end());
  for (auto& field : x.fields) shorten(field.value, value_bytes_max);
  std::map<uint64_t, std::function<void()>> woken;
  {
    const std::lock_guard lock{mutex_};
    x.number = ++newest_;
    events_.push_back(std::move(x));
    if (events_.size() > capacity_) events_.pop_front();
    woken.swap(waiting_);
  }
  for (const auto& [ticket, wake] : woken) wake();
}

event_log::page event_log::after(uint64_t number,
                                 std::chrono::system_clock::time_point since) const {
  const std::lock_guard lock{mutex_};
  if (number > newest_) number = 0;
  page result;
  result.newest = newest_;
  const auto oldest = newest_ - events_.size() + 1;
  if (number + 1 < oldest) result.missed = oldest - number - 1;
  for (const auto& x : events_)
    if (x.number > number && x.at >= since) result.events.push_back(x);
  return result;
}

uint64_t event_log::wait(uint64_t number, std::function<void()> wake) {
  const std::lock_guard lock{mutex_};
  if (newest_ != number) return 0;
  waiting_.emplace(++tickets_, std::move(wake));
  return tickets_;
}

void event_log::stop_waiting(uint64_t ticket) {
  const std::lock_guard lock{mutex_};
  waiting_.erase(ticket);
}

size_t event_log::waiting() const {
  const std::lock_guard lock{mutex_};
  return waiting_.size();
}

event_log& events() {
  static event_log all;
  return all;
}

void tell(event_kind kind, std::vector<event_field> fields) {
  event x{kind, date_of_machine(), std::move(fields)};
  spdlog::log(row_of(kind).level, "{}", x.text());
  events().add(std::move(x));
}

} // namespace lamella::actors
