/// A control process as small as can be.
#pragma once

#include "actors/protocol/join.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/system_config.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/worker/control_link.hpp"
#include "actors/worker/door.hpp"
#include "tests/actors/membership/stand_in.hpp"
#include "tests/actors/worker/joined.hpp"

#include <caf/io/all.hpp>

namespace lamella::actors::test {

/// A real door, and a membership that takes whoever comes.
class taker {
public:
  taker() : options_{2, control()}, system_{options_} {
    const auto members = system_.spawn(stand_in_membership(answers()));
    door_config d{net::shared_secret::from_file(secret_file),
                  "cluster",
                  LAMELLA_VERSION,
                  100,
                  120'000,
                  members,
                  [] { return net::random_bytes(nonce_bytes); }};
    door_ = system_.spawn(door, std::move(d));
    members_ = members;
    gate_ = publish_door(system_, door_, control(), {net::shared_secret::from_file(secret_file)});
    port = gate_->port();
  }
  ~taker() {
    gate_.reset();
    caf::scoped_actor self{system_}; // the door obeys nobody without a name
    self->send_exit(door_, caf::exit_reason::user_shutdown);
    self->send_exit(members_, caf::exit_reason::user_shutdown);
  }

  /// The worker that has joined; null before.
  worker_actor joined() {
    std::lock_guard lock{mutex_};
    return joined_;
  }

  /// Who wanted to leave.
  std::vector<std::string> drained() {
    std::lock_guard lock{mutex_};
    return drained_;
  }

  static config::control_settings control() {
    config::control_settings x;
    x.listen = "127.0.0.1:0";
    x.dead = std::chrono::seconds{120};
    return x;
  }

  tests::scratch_folder folder;
  std::filesystem::path secret_file = make_secret();
  uint16_t port = 0;
  std::atomic<bool> refuses{false}; ///< to let a worker leave
  std::atomic<bool> busy{false};    ///< with another change

private:
  std::filesystem::path make_secret() {
    const auto file = folder / "secret";
    std::ofstream{file} << std::string(40, 's') << "\n";
    chmod(file.c_str(), 0400);
    return file;
  }

  membership_answers answers() {
    membership_answers x;
    x.seat = [](const seat_ask& ask) -> caf::result<join_grant> {
      worker_terms t;
      t.version = LAMELLA_VERSION;
      t.kernels = "reference";
      t.shapes = "any";
      t.threads = 1;
      t.transport = "shm";
      t.link_secret = std::string(32, 'l');
      return join_grant{ask.proof, ask.role, 0, 1, 0, t};
    };
    x.facts = [this](const worker_facts& told) {
      std::lock_guard lock{mutex_};
      joined_ = told.handle;
    };
    x.drain = [this](const worker_drain& ask) -> caf::result<pool_change> {
      std::lock_guard lock{mutex_};
      drained_.push_back(ask.worker);
      if (busy) return pool_change{"attention", 2, 2, ask_again, "another change is under way"};
      if (refuses) return caf::make_error(ec::resize_refused, "test");
      return pool_change{"attention", 2, 1, "under way", {}};
    };
    return x;
  }

  system_config options_;
  caf::actor_system system_;
  std::mutex mutex_; ///< of the next one
  worker_actor joined_;
  std::vector<std::string> drained_;
  door_actor door_;
  std::unique_ptr<net::control_gate> gate_;
  membership_actor members_;
};

} // namespace lamella::actors::test
