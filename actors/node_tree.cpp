#include "actors/node_impl.hpp"

#include "actors/control_link.hpp"
#include "actors/kv_rebuild.hpp"
#include "actors/supervisor.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

namespace lamella::actors {

namespace {

/// Restarts of the whole pipeline before the process gives up (reliability A8).
constexpr uint32_t restarts_max = 5;
constexpr std::chrono::seconds restart_window{30};

/// Until the supervisor asks again for workers that have not come.
constexpr caf::timespan workers_patience = std::chrono::minutes{1};

} // namespace

void node::impl::tell_who_is_there(const seat_news& x) {
  using scheduler::worker_role;
  std::vector<health_board::role> roles;
  for (auto role : {worker_role::model, worker_role::attention, worker_role::prefill}) {
    const auto places = x.seats.members(role);
    if (places == 0) continue;
    const std::string name{scheduler::to_string(role)};
    uint32_t ready = 0;
    for (uint32_t i = 0; i < places; ++i) {
      const auto worker = name + "-" + std::to_string(i);
      numbers->set_worker_up(name, worker, x.seats.occupied({role, i}));
      numbers->set_worker_slow(name, worker, x.slow.contains({role, i}));
      ready += x.ready.contains({role, i}) ? 1 : 0;
    }
    // Whoever is above the need is a spare, wherever it sits.
    const auto need = members_needed(options, role);
    const auto up = std::min(need, ready);
    roles.push_back({name, need, up, places - need, ready - up,
                     std::ranges::find(x.lacking, role) == x.lacking.end()});
  }
  health->set_roles(std::move(roles));
  health->set_missing(x.seats.missing());
  std::string slow;
  for (const auto& who : x.slow) slow += (slow.empty() ? "" : ", ") + scheduler::to_string(who);
  health->set_slow(std::move(slow));
}

void node::impl::join_workers() {
  if (options.pools.attention.parity) parts->parity.emplace(options.pools.attention.members);
  control_plane_config c;
  c.parts = parts;
  c.model_path = std::filesystem::absolute(model.file->path()).string();
  c.model_digest = model.file->digest();
  c.links = links;
  c.program = worker_program;
  c.on_change = [this](const seat_news& x) { tell_who_is_there(x); };
  c.on_give_up = [this](const std::string& name) {
    spdlog::critical("a worker cannot be kept alive worker={}", name);
    give_up();
  };
  control = std::make_unique<control_plane>(system, std::move(c));
  parts->members = control->members();
  if (front) caf::anon_send(front, parts->members);
  try {
    control->start();
  } catch (const link_error& e) {
    throw start_error{69, std::string{"control.listen: "} + e.what()};
  } catch (const std::runtime_error& e) {
    throw start_error{78, std::string{"control.secret_file: "} + e.what()};
  }
}

void node::impl::set_roles(bool up) {
  if (options.pools.distributed()) return; // membership says who is there
  const auto count = [&](uint32_t n) { return up ? n : 0; };
  const auto& pools = options.pools;
  const auto role = [&](const char* name, uint32_t wanted) {
    return health_board::role{name, wanted, count(wanted), 0, 0, up};
  };
  health->set_roles({role("model", pools.model.members), role("attention", pools.attention.members),
                     role("prefill", pools.prefill.members)});
}

void node::impl::build() {
  subtree tree;
  tree.name = "pipeline";
  if (options.pools.distributed())
    tree.prepare = [this](caf::event_based_actor* self, auto ready) {
      uint64_t built = 0;
      {
        std::lock_guard lock{server_mutex};
        if (server) built = server->epoch;
      }
      self->request(parts->members, workers_patience, caf::open_atom_v, built)
          .then(
              [this, self, ready](const epoch_members& x) {
                parts->workers = x;
                if (parts->parity)
                  fill_by_parity(self, *parts, x, [ready] { ready(std::nullopt); });
                else
                  ready(std::nullopt);
              },
              [self, ready](const caf::error& e) { ready(self->system().render(e)); });
    };
  tree.start = [this](caf::event_based_actor* self, uint64_t generation) {
    if (parts->parity) {
      parts->began = parts->parity->begin();
      parts->workers->empty = parts->began.lost;
    }
    parts->base.restarts = generation - 1;
    auto built = build_pipeline(self, *parts, generation);
    parts->base.lost_role.clear(); // only of the epoch that follows the loss
    parts->base.by_parity = false;
    {
      std::lock_guard lock{server_mutex};
      server = built.server;
      members.clear();
      for (const auto& x : built.actors) members.push_back(caf::actor_cast<caf::actor_addr>(x));
    }
    set_roles(true);
    if (health->where() == health_board::phase::rebuilding)
      health->enter(health_board::phase::serving);
    // Last: whoever waits for a served pipeline finds all of the above.
    if (front)
      caf::anon_send(front, built.server);
    else
      health->set_served();
    return built.actors;
  };
  tree.on_trouble = [this](bool given_up, const std::string& role) {
    set_roles(false);
    parts->base.lost_role = role.empty() ? "model" : role; // whoever ended ran on replicas
    numbers->failover(parts->base.lost_role, "exit");
    if (given_up) {
      give_up();
    } else if (health->where() == health_board::phase::serving) {
      health->enter(health_board::phase::rebuilding);
    }
  };
  // Where workers are processes it is their keeper who knows how they end.
  if (!options.pools.distributed())
    tree.on_fault = [blame = parts->blame] { return blame->ended_here(); };
  tree.on_stop = [kept = parts->kept] {
    if (kept->handle) caf::anon_send_exit(kept->handle, caf::exit_reason::user_shutdown);
    kept->handle = nullptr;
  };
  root = system.spawn(supervisor, std::move(tree),
                      scheduler::restart_policy{restarts_max, restart_window});
}

void node::impl::give_up() {
  health->enter(health_board::phase::failed);
  if (!drained.exchange(true)) end_callback(true);
}

std::vector<vital_actor> node::impl::vital() const {
  auto result = control->vital();
  if (front) result.push_back({"gateway", caf::actor_cast<caf::strong_actor_ptr>(front)});
  if (root) result.push_back({"supervisor", caf::actor_cast<caf::strong_actor_ptr>(root)});
  return result;
}

void node::impl::watch_vital_actors() {
  watch = system.spawn(warden, warden_config{vital(), [this](const std::string&) { give_up(); }});
}

} // namespace lamella::actors
