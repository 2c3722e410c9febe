/// NODE: this process's tree, from settings to a served model; the only place that builds it.
#pragma once

#include "actors/machine/link_port.hpp"
#include "actors/node/pipeline.hpp"
#include "actors/node/warden.hpp"
#include "actors/request/reload.hpp"
#include "config/settings.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace lamella::actors {

/// The service cannot start; `exit_code` as in api-and-ops 13.
struct start_error : std::runtime_error {
  start_error(int code, const std::string& what, std::string advice = {})
      : std::runtime_error{what}, exit_code{code}, hint{std::move(advice)} {}
  int exit_code;
  std::string hint;
};

/// Told while the model is loaded: phase, bytes done, bytes in all.
using load_progress = std::function<void(const std::string&, uint64_t, uint64_t)>;

class node {
public:
  /// Without `listens` there is no HTTP: for benchmarks that talk to the pipeline itself.
  explicit node(config::settings options, bool listens = true);

  /// How this process connects links to workers, and the program they run; before start().
  void connect_with(link_port_maker links, std::string worker_program = {});

  /// Ends at once whatever still runs.
  ~node();

  node(const node&) = delete;
  node& operator=(const node&) = delete;

  /// Opens the model, listens, loads the weights, builds the pipeline, and returns when a first
  /// token went through it. Probes answer from the second step on. Where workers are processes it
  /// waits for them as long as it takes, or until `interrupted` says yes (then it returns false).
  /// Throws start_error.
  bool start(const load_progress& progress, const std::function<bool()>& interrupted = {});

  /// The bound ports; valid after start().
  uint16_t http_port() const;
  uint16_t admin_port() const;
  uint16_t control_port() const; ///< where workers join; 0 where there are none

  /// What is served, in one line each, for the terminal.
  std::string summary() const;

  /// Where reload() reads the configuration, and who is told what was taken of it, beside this
  /// node's own parts. Before start().
  void reload_from(
      configuration_source source,
      std::function<void(const config::settings&)> taken = [](const auto&) {});

  /// Reads the configuration again and takes what needs no restart: all of it, or nothing where
  /// anything is wrong. Requests that are there keep the rules they came with. Logged and counted;
  /// `POST /admin/reload` is the same. Thread-safe; a node that listens, after start().
  reload_report reload();

  /// `shutdown.drain_seconds` as it is now.
  std::chrono::milliseconds drain_limit() const;

  /// Refuses new requests, lets running ones finish for at most `limit`, ends the rest with 503 and
  /// stops everything. True when all had finished. Call once.
  bool drain(std::chrono::milliseconds limit);

  /// Lets a drain that runs go on no longer.
  void hurry();

  /// Called once, on some thread, when the process must end: an operator's drain (false) or a
  /// pipeline that cannot be kept alive (true). Set before start().
  void on_end(std::function<void(bool failed)> callback);

  /// The actor system and the service, for benchmarks and tests that skip HTTP.
  caf::actor_system& system();
  service_ptr server() const;
  /// The actors of the newest pipeline, in the order of their start: for tests that end one.
  std::vector<caf::strong_actor_ptr> pipeline_actors() const;
  /// Those that nobody starts again, by name: for tests that end one.
  std::vector<vital_actor> vital_actors() const;
  const pipeline_parts& parts() const;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace lamella::actors
