/// What an operator should hear of: told once, to the log and to those who read events.
#pragma once

#include "base/json_writer.hpp"

#include <fmt/format.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::actors {

enum class event_kind : uint8_t {
  worker_joined,
  worker_draining,
  worker_left,
  worker_lost,
  worker_refused,
  worker_fenced,
  worker_reachable,
  worker_slow,
  worker_recovered,
  worker_exited,  ///< the process of a child
  worker_failing, ///< again and again
  epoch_opened,
  epoch_taken_over,
  epoch_dropped,
  epoch_closed,
  pool_resizing,
  pool_resized,
  pool_rolled_back,
  pool_refused,
  pool_short,       ///< serves with fewer members until others come
  pipeline_chosen,  ///< of an epoch that is being opened
  pool_wish,        ///< of a pool that does not follow it by itself
  pool_autoscaling, ///< of one that does
  kv_move_begun,
  kv_moved,
  kv_move_aborted,
  kv_not_moved, ///< memory holds one copy only: it is computed again
  config_reloaded,
  config_refused,
  service_restarting,
  service_failed, ///< its budget of restarts is spent
  service_draining,
};

/// A named value of an event.
struct event_field {
  std::string name, value;
  bool is_number = false;

  event_field(std::string n, std::string v) : name{std::move(n)}, value{std::move(v)} {}
  event_field(std::string n, std::string_view v) : event_field{std::move(n), std::string{v}} {}
  event_field(std::string n, const char* v) : event_field{std::move(n), std::string{v}} {}
  template <std::integral T>
  event_field(std::string n, T v) : name{std::move(n)}, value{std::to_string(v)}, is_number{true} {}
  /// Seconds, and whatever else has fractions.
  event_field(std::string n, double v)
      : name{std::move(n)}, value{fmt::format("{:.4f}", v)}, is_number{true} {}
};

/// "worker_lost".
std::string_view name_of(event_kind kind);

struct event {
  event_kind kind{};
  std::chrono::system_clock::time_point at{};
  std::vector<event_field> fields{};
  uint64_t number = 0; ///< of all events of this process, from 1

  /// Whom it is about: "attention/1", "attention", "epoch 7"; "service" where nobody else is.
  std::string subject() const;
  /// The line in the log: `worker lost seat=attention/1 reason="..."`.
  std::string text() const;
};

/// {"number":1,"time":"2026-01-31T12:00:00.000Z","kind":...,"subject":...,"text":...,"fields":{...}}
void write_event(json_writer& out, const event& x);

/// "2026-01-31T12:00:00.000Z"
std::string utc_text(std::chrono::system_clock::time_point at);

/// The newest events. All methods may be called from any thread.
class event_log {
public:
  explicit event_log(size_t capacity = 1024) : capacity_{capacity} {}

  /// Gives it the next number. Of long values the beginning is kept, and so many fields at most.
  void add(event x);

  struct page {
    std::vector<event> events; ///< the oldest first
    uint64_t missed = 0;       ///< events after that number that are gone
    uint64_t newest = 0;       ///< number; 0: none
  };
  /// Those after that number, and not before that time. A number that has not been given yet is of
  /// another run of the service: its reader gets all.
  page after(uint64_t number, std::chrono::system_clock::time_point since = {}) const;

  /// Calls `wake` once, when the next event is added, on the thread that adds it. Returns a ticket
  /// for stop_waiting(); 0 where an event after that number is there already.
  uint64_t wait(uint64_t number, std::function<void()> wake);
  void stop_waiting(uint64_t ticket);
  /// How many wait.
  size_t waiting() const;

  static constexpr size_t value_bytes_max = 512, fields_max = 16;

private:
  const size_t capacity_;
  mutable std::mutex mutex_; ///< of the members below
  std::deque<event> events_;
  uint64_t newest_ = 0, tickets_ = 0;
  std::map<uint64_t, std::function<void()>> waiting_;
};

/// Those of this process, as the log is.
event_log& events();

/// Logs an event, and adds it to events().
void tell(event_kind kind, std::vector<event_field> fields);

} // namespace lamella::actors
