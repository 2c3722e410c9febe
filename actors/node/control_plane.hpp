/// The workers of a service: membership, the seats of this process, and, where pools are outside of
/// it, the door and child processes.
#pragma once

#include "actors/machine/link_port.hpp"
#include "actors/node/keeper_line.hpp"
#include "actors/node/own_maker.hpp"
#include "actors/node/pipeline_parts.hpp"
#include "actors/node/warden.hpp"
#include "actors/protocol/join.hpp"
#include "actors/worker/child_keeper.hpp"
#include "actors/worker/door.hpp"
#include "net/data_plane/control_gate.hpp"
#include "net/data_plane/private_folder.hpp"
#include "net/data_plane/shared_secret.hpp"
#include "scheduler/compatibility.hpp"
#include "scheduler/membership/seats.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

namespace lamella::actors {

struct epoch_design;
struct membership_config;
struct seat_news;

struct control_plane_config {
  std::shared_ptr<pipeline_parts> parts; ///< weights only where this process has compute seats
  std::string model_path;
  uint64_t model_digest = 0;
  uint64_t weight_bytes = 0; ///< of the model file
  link_port_maker links;
  std::string program; ///< of child processes; empty: this one
  std::function<void(const seat_news&)> on_change;
  /// Called when too many seats fail at start-up to decode, or too many of this process at any
  /// time. May be called more than once.
  std::function<void(const std::string& why)> on_hopeless;
  /// Whether a device of this process is lost; it has told of that then.
  std::function<bool()> device_lost;
};

/// Started and stopped by the node; between the two only its actors work.
class control_plane {
public:
  /// Spawns MEMBERSHIP.
  control_plane(caf::actor_system& system, control_plane_config config);

  /// stop().
  ~control_plane();

  control_plane(const control_plane&) = delete;
  control_plane& operator=(const control_plane&) = delete;

  const membership_actor& members() const { return members_; }

  /// Publishes the door and starts the child processes, where there may be workers outside of this
  /// process; takes this process's own seats. Throws link_error, std::runtime_error (secret file).
  void start();

  /// A pipeline serves.
  void on_serving();

  /// Dismisses workers, stops child processes and closes the door. Blocks for at most some seconds.
  void stop();

  /// Why the pools of these settings cannot have these sizes together; empty: they can. MEMBERSHIP
  /// may still refuse a change to them.
  std::string why_not(const pool_sizes& sizes, const config::settings& settings) const;

  /// The attention cells of settings, for MEMBERSHIP, which puts them in force. `taken`: names of
  /// the cells that are new or get other settings; `settled`: set by whoever comes first,
  /// MEMBERSHIP that takes them, or who waits no longer.
  cells_ptr roster_with(const config::settings& settings, const std::set<std::string>& taken,
                        std::shared_ptr<std::atomic<bool>> settled) const;

  /// Null where there are no child processes; after start().
  const child_keeper_actor& keeper() const { return keeper_; }

  /// Null where this process has no seats.
  const own_seats_actor& own() const { return own_; }

  uint16_t port() const { return port_; } ///< of the door

  /// Its actors without a supervisor; after start().
  std::vector<vital_actor> vital() const;

private:
  membership_config membership_of(const config::settings& options);
  void open_door();
  worker_terms terms_of(const scheduler::seat& where, uint32_t place) const;
  epoch_design design_of(const pool_sizes& sizes, const config::settings& settings) const;
  void keep_seats(const std::set<scheduler::seat>& all);
  /// The worker processes of this host among these seats.
  std::vector<child_command> children(const std::set<scheduler::seat>& seats) const;
  std::vector<scheduler::seat> own_seats_of(const config::settings& options) const;
  void take_own_seats();

  caf::actor_system& system_;
  control_plane_config config_;
  std::optional<net::shared_secret> secret_, child_secret_;
  std::unique_ptr<net::control_gate> gate_;
  std::string link_secret_;
  uint32_t link_cluster_ = 0;
  std::optional<net::private_folder> folder_; ///< of the sockets of this process and its children
  std::shared_ptr<own_maker> maker_;          ///< of the WORKERs of this process
  own_seats_actor own_;                       ///< null where this process has no seats
  membership_actor members_;
  door_actor door_;
  child_keeper_actor keeper_;
  std::shared_ptr<keeper_line> told_ = std::make_shared<keeper_line>();
  uint16_t port_ = 0;
  bool distributed_ = false;  ///< some workers are, or may be, outside of this process
  size_t cells_at_start_ = 1; ///< a pool without any is one
};

/// Properties that all workers must have.
scheduler::identity identity_of(const pipeline_parts& parts, uint64_t model_digest);

} // namespace lamella::actors
