/// The multi-process part of a service: the door, membership, child processes, and this process's
/// own seats.
#pragma once

#include "actors/machine/link_port.hpp"
#include "actors/node/pipeline.hpp"
#include "actors/node/warden.hpp"
#include "actors/protocol/join.hpp"
#include "actors/worker/child_keeper.hpp"
#include "actors/worker/door.hpp"
#include "actors/worker/worker.hpp"
#include "net/data_plane/control_gate.hpp"
#include "net/data_plane/private_folder.hpp"
#include "net/data_plane/shared_secret.hpp"
#include "scheduler/compatibility.hpp"
#include "scheduler/membership/seats.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace lamella::actors {

struct control_plane_config {
  std::shared_ptr<pipeline_parts> parts; ///< weights only where this process has compute seats
  std::string model_path;
  uint64_t model_digest = 0;
  link_port_maker links;
  std::string program; ///< of child processes; empty: this one
  std::function<void(const seat_news&)> on_change;
  /// Called when the service is impossible: a seat of this process failed, or too many seats fail
  /// at start-up to decode. May be called more than once.
  std::function<void(const std::string& why)> on_give_up;
};

/// From membership to the keeper of child processes, which starts later and stops earlier.
class keeper_line {
public:
  void keep(child_keeper_actor x) {
    std::lock_guard lock{mutex_};
    keeper_ = std::move(x);
  }
  /// False when there is no keeper.
  bool tell(uint32_t pid, worker_news news) {
    std::lock_guard lock{mutex_};
    if (!keeper_) return false;
    caf::anon_send(keeper_, pid, news);
    return true;
  }
  void tell(std::vector<child_command> all) {
    std::lock_guard lock{mutex_};
    if (keeper_)
      caf::anon_send(keeper_, std::make_shared<const std::vector<child_command>>(std::move(all)));
  }

private:
  std::mutex mutex_;
  child_keeper_actor keeper_;
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

  /// Publishes the door, starts the child processes and takes this process's own seats. Throws
  /// link_error, std::runtime_error (secret file).
  void start();

  /// Dismisses workers, stops child processes and closes the door. Blocks for at most some seconds.
  void stop();

  /// Null where there are no child processes; after start().
  const child_keeper_actor& keeper() const { return keeper_; }

  uint16_t port() const { return port_; } ///< of the door

  /// Its actors without a supervisor; after start().
  std::vector<vital_actor> vital() const;

private:
  bool distributed() const;
  worker_terms terms_of(const scheduler::seat& where) const;
  epoch_design design_of(const pool_sizes& sizes) const;
  child_command child_of(const scheduler::seat& where) const;
  /// The worker processes of this host among these seats.
  std::vector<child_command> children(const std::set<scheduler::seat>& seats) const;
  void take_own_seats();
  /// Asks for one seat, spawns its worker and reports its facts. Throws link_error.
  void take_own_seat(caf::scoped_actor& self, const scheduler::seat& where, const link_port& port);
  worker_config own_worker(scheduler::worker_role role, const std::string& name,
                           const join_grant& grant, const link_port& port) const;

  caf::actor_system& system_;
  control_plane_config config_;
  std::optional<net::shared_secret> secret_, child_secret_;
  std::unique_ptr<net::control_gate> gate_;
  std::string link_secret_;
  uint32_t link_cluster_ = 0;
  std::optional<net::private_folder> folder_; ///< of the sockets of this process and its children
  membership_actor members_;
  door_actor door_;
  child_keeper_actor keeper_;
  std::shared_ptr<keeper_line> told_ = std::make_shared<keeper_line>();
  uint16_t port_ = 0;
  std::shared_ptr<std::atomic<bool>> stopping_ = std::make_shared<std::atomic<bool>>(false);
};

/// Properties that all workers must have.
scheduler::identity identity_of(const pipeline_parts& parts, uint64_t model_digest);

} // namespace lamella::actors
