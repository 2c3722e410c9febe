/// NODE: the actor tree of this process, from settings to a served model; the only place that
/// builds it.
#pragma once

#include "actors/machine/link_port.hpp"
#include "actors/node/warden.hpp"
#include "actors/protocol/actors.hpp"
#include "actors/request/reload.hpp"
#include "config/settings.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace lamella::actors {

/// The service cannot start; `exit_code` as in cli/commands.hpp.
struct start_error : std::runtime_error {
  start_error(int code, const std::string& what, std::string advice = {})
      : std::runtime_error{what}, exit_code{code}, hint{std::move(advice)} {}
  int exit_code;
  std::string hint;
};

struct pipeline_parts;

/// Progress of loading: phase, bytes done, bytes in total.
using load_progress = std::function<void(const std::string&, uint64_t, uint64_t)>;

class node {
public:
  /// Without `listens` there is no HTTP: for benchmarks that use the pipeline directly.
  explicit node(config::settings options, bool listens = true);

  /// How this process connects links to workers, and the program they run; before start().
  void connect_with(link_port_maker links, std::string worker_program = {});

  /// Stops everything at once.
  ~node();

  node(const node&) = delete;
  node& operator=(const node&) = delete;

  /// Opens the model, listens, loads the weights, builds the pipeline, and returns when a first
  /// token went through it. Probes are answered from the second step on. Waits for worker processes
  /// without a timeout, or until `interrupted` returns true (then it returns false). Throws
  /// start_error.
  bool start(const load_progress& progress, const std::function<bool()>& interrupted = {});

  /// The bound ports; valid after start().
  uint16_t http_port() const;
  uint16_t admin_port() const;
  uint16_t control_port() const; ///< where workers join; 0 where there are none

  /// Summary of the service for the terminal, one line each.
  std::string summary() const;

  /// The source of reload(), and a listener for applied values, in addition to this node's own
  /// parts. Before start().
  void reload_from(
      configuration_source source,
      std::function<void(const config::settings&)> taken = [](const auto&) {});

  /// Rereads the configuration and applies the values that need no restart: all of them, or none if
  /// there is any problem. Running requests keep their rules. Logged and counted; the same as `POST
  /// /admin/reload`. Thread-safe; for a node that listens, after start().
  reload_report reload();

  /// The current `shutdown.drain_seconds`.
  std::chrono::milliseconds drain_limit() const;

  /// Drains: rejects new requests, lets running ones finish and answers be written for at most
  /// `limit`, aborts the rest with 503 and stops everything. True when all had finished. Call once.
  bool drain(std::chrono::milliseconds limit);

  /// Ends a running drain.
  void hurry();

  /// Called once, on some thread, when the process must exit: an operator's drain (false) or a
  /// failed pipeline (true). Set before start().
  void on_end(std::function<void(bool failed)> callback);

  /// The actor system and the service, for benchmarks and tests that skip HTTP.
  caf::actor_system& system();
  service_ptr server() const;
  /// The actors of the newest pipeline, in the order of their start: for tests that kill one.
  std::vector<caf::strong_actor_ptr> pipeline_actors() const;
  /// Actors without a supervisor, by name: for tests that kill one.
  std::vector<vital_actor> vital_actors() const;
  const pipeline_parts& parts() const;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace lamella::actors
