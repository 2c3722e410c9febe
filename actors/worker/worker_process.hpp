/// A worker process: joins, loads what its seat needs, serves it.
#pragma once

#include "actors/machine/devices.hpp"
#include "actors/machine/link_port.hpp"
#include "actors/protocol/actors.hpp"
#include "actors/protocol/join.hpp"
#include "config/settings.hpp"
#include "gpu/host/host_engine.hpp"
#include "gpu/runners/weights.hpp"
#include "model/program/program.hpp"
#include "net/data_plane/shared_secret.hpp"
#include "scheduler/membership/seats.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lamella::actors {

struct worker_options {
  scheduler::worker_role role = scheduler::worker_role::model;
  std::string name; ///< in logs and status
  uint32_t preferred = any_seat;
  std::string cell{}; ///< the attention cell to join; empty: the pool
  config::host_and_port join;
  config::control_settings control; ///< heartbeats and TLS; `listen` is not used
  std::filesystem::path model;      ///< empty: the path of the control process
  std::string device = "auto";      ///< auto: from the control process; host or cuda:N
  device_set::opener open_cuda;     ///< as device_set's
  /// For others to take its part over when it is told to stop; 0: it ends at once.
  std::chrono::milliseconds drain{0};
};

/// Why a session ended.
enum class session_end {
  stopped,     ///< by a signal, and drained where that was asked for; or it is dismissed
  unreachable, ///< no control process, or none that accepts us; retry
  lost,        ///< the control process is gone or dismissed us; rejoin
  denied,      ///< wrong secret
  refused,     ///< this worker does not fit the service
  failed       ///< our device failed
};

/// Keeps engine, device and weights between sessions, so that a rejoin does not reload them.
class worker_process {
public:
  worker_process(worker_options options, const net::shared_secret& secret, link_port_maker links);

  /// Runs one session with the control process until it ends for one of the reasons above; logs the
  /// reason in one line. Both are polled ten times a second, `stop` also while loading; `hurry`
  /// ends a drain.
  session_end run(
      const std::function<bool()>& stop, const std::function<bool()>& hurry = [] { return false; });

  /// Whether the last session got as far as serving.
  bool served() const { return served_; }

private:
  struct stopped_here {};
  class session;
  void load(const worker_terms& terms, const std::function<bool()>& stop);
  void open(const worker_terms& terms);
  void check_fits(const gpu::device& device, const worker_terms& terms) const;
  std::string device_option(const worker_terms& terms) const;
  void load_weights(const worker_terms& terms, const std::function<bool()>& stop);
  worker_facts facts() const;

  worker_options options_;
  net::shared_secret secret_;
  link_port_maker links_;
  // What was loaded, and for which terms.
  std::shared_ptr<gpu::host_engine> engine_;
  std::shared_ptr<device_set> devices_;
  std::string opened_;                  ///< the option that the devices were opened for
  std::shared_ptr<gpu::device> device_; ///< of the engine, or a CUDA device
  std::vector<std::shared_ptr<gpu::device>> other_devices_; ///< of ranks 1, 2, ...
  std::string refusal_;                                     ///< why it cannot serve its seat
  std::shared_ptr<const model::model_program> program_;
  std::shared_ptr<const gpu::packed_weights> weights_;
  std::vector<std::shared_ptr<const gpu::packed_weights>> other_weights_;
  uint64_t digest_ = 0;
  std::string shapes_;
  bool served_ = false;
};

} // namespace lamella::actors
