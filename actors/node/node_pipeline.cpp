#include "actors/membership/membership_config.hpp"
#include "actors/node/node_impl.hpp"

#include "actors/machine/seat_groups.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/node/kv_rebuild.hpp"
#include "actors/node/pipeline.hpp"
#include "actors/node/supervisor.hpp"
#include "actors/node/takeover.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/shared/explain.hpp"
#include "actors/worker/control_link.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

namespace lamella::actors {

namespace {

/// Until the supervisor asks again for workers that have not come.
constexpr caf::timespan workers_timeout = std::chrono::minutes{1};

/// "model/1, attention/0"
std::string names_of(const std::set<scheduler::seat>& seats) {
  std::string text;
  for (const auto& x : seats) text += (text.empty() ? "" : ", ") + scheduler::to_string(x);
  return text;
}

} // namespace

/// The metrics of a pool's workers; how many of them can have a part.
uint32_t node::impl::count_ready(const seat_news& x, scheduler::worker_role role) {
  const std::string name{scheduler::to_string(role)};
  uint32_t ready = 0;
  for (const auto& where : x.seats.all()) {
    if (where.role != role) continue;
    const auto worker = name + "-" + std::to_string(where.index);
    const bool up = x.ready.contains(where);
    metrics->set_worker_state(name, worker,
                              up                          ? net::worker_condition::live
                              : x.failing.contains(where) ? net::worker_condition::failing
                              : x.seats.occupied(where)   ? net::worker_condition::loading
                                                          : net::worker_condition::missing);
    metrics->set_worker_slow(name, worker, x.slow.contains(where));
    ready += up ? 1 : 0;
  }
  return ready;
}

/// Prefill workers without seats are there when replicas are.
health_board::role node::impl::prefill_on_replicas(bool up) {
  const auto count = options.pools.prefill.members;
  for (uint32_t i = 0; up && i < count; ++i)
    metrics->set_worker_state("prefill", "prefill-" + std::to_string(i),
                              net::worker_condition::live);
  return {"prefill", count, up ? count : 0, 0, 0, true};
}

void node::impl::tell_who_is_there(const seat_news& x) {
  using scheduler::worker_role;
  const auto now = parts->options.now();
  std::vector<health_board::role> roles;
  uint32_t needed = 0, joined = 0;
  std::string lacking;
  for (auto role : {worker_role::model, worker_role::attention, worker_role::prefill}) {
    const auto places = x.seats.members(role);
    if (places == 0) continue;
    const auto ready = count_ready(x, role);
    // A seat of this process is taken again in no time.
    const bool serves =
        std::ranges::find(x.lacking, role) == x.lacking.end() || is_in_process(*now, role);
    // Whoever is above the need is a spare, wherever it sits.
    const auto need = x.needed.at(role);
    const auto members_up = std::min(need, ready);
    needed += need;
    joined += members_up;
    const std::string name{scheduler::to_string(role)};
    metrics->set_pool_members(name, need - (role == worker_role::attention ? x.parity : 0));
    if (!serves && lacking.empty()) lacking = name;
    roles.push_back({name, need, members_up, places - need, ready - members_up, serves});
  }
  forget_workers(x.seats.all());
  if (!options.pools.prefill.has_seats())
    roles.push_back(
        prefill_on_replicas(std::ranges::find(x.lacking, worker_role::model) == x.lacking.end()));
  const auto there = needed == 0 ? 1.0 : 1.0 * joined / needed;
  metrics->set_load_progress("join", there);
  health->set_progress("join", there, std::nullopt);
  health->pauses.lacks(lacking);
  health->set_roles(std::move(roles));
  health->set_missing(x.seats.missing());
  health->set_fenced(names_of(x.fenced));
  health->set_slow(names_of(x.slow));
  health->set_failing(names_of(x.failing));
}

/// Seats that were taken away have no metrics any more.
void node::impl::forget_workers(const std::set<scheduler::seat>& seats) {
  for (const auto& where : told_seats)
    if (!seats.contains(where)) {
      const std::string role{scheduler::to_string(where.role)};
      metrics->remove_worker(role, role + "-" + std::to_string(where.index));
    }
  told_seats = seats;
}

void node::impl::join_workers() {
  if (options.pools.attention.any_parity()) {
    parts->parity.emplace(parity_cells(options));
    parts->digests = std::make_shared<digest_book>(2 * parts->layout.slots());
  }
  control_plane_config c;
  c.parts = parts;
  c.model_path = std::filesystem::absolute(model.file->path()).string();
  c.model_digest = model_digest;
  c.weight_bytes = model.file->file_bytes();
  c.links = links;
  c.program = worker_program;
  c.on_change = [this](const seat_news& x) { tell_who_is_there(x); };
  c.on_hopeless = [this](const std::string& why) {
    spdlog::critical("the service cannot serve reason=\"{}\"", why);
    give_up();
  };
  c.device_lost = [this] { return device_lost(); };
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

void node::impl::gather_workers(caf::event_based_actor* self,
                                std::function<void(std::optional<std::string>)> ready) {
  uint64_t built = 0;
  {
    std::lock_guard lock{server_mutex};
    if (server) built = server->epoch;
  }
  self->request(parts->members, workers_timeout, caf::open_atom_v, built)
      .then(
          [this, self, ready](epoch_members x) {
            if (parts->moved_in_vain) {
              x.empty.resize(x.layout.all());
              std::iota(x.empty.begin(), x.empty.end(), 0u);
            }
            parts->workers = std::make_shared<epoch_members>(x);
            if (parts->parity)
              fill_by_parity(self, *parts, x, [ready] { ready(std::nullopt); });
            else
              ready(std::nullopt);
          },
          [self, ready](const caf::error& e) { ready(explain(self->system(), e)); });
}

/// A process cannot open a device again.
bool node::impl::device_lost() {
  const auto lost = parts->devices->lost();
  if (!lost) return false;
  spdlog::critical("device lost device=\"{}\": only a new process can open it", *lost);
  give_up();
  return true;
}

std::vector<caf::strong_actor_ptr> node::impl::start_pipeline(caf::event_based_actor* self) {
  if (device_lost()) return {};
  if (parts->parity) {
    parts->began = parts->parity->begin(parts->workers->empty);
    parts->workers->empty = parts->began.lost;
  }
  note_numerics(*parts->workers);
  if (!parts->planned) ++starts; // a generation that takes over is no restart
  parts->base.restarts = starts - 1;
  auto built = build_pipeline(self, *parts);
  parts->moved_in_vain = false;
  parts->base.lost_role.clear(); // only of the epoch that follows the loss
  parts->base.by_parity = false;
  {
    std::lock_guard lock{server_mutex};
    server = built.server;
    parity_keepers = built.parity_keepers;
    members.clear();
    for (const auto& x : built.actors) members.push_back(caf::actor_cast<caf::actor_addr>(x));
    facts = built.facts;
  }
  if (const auto x = tally.serves(parts->workers->losses)) metrics->failover(x->first, x->second);
  control->on_serving();
  if (health->where() == health_board::phase::rebuilding)
    health->enter(health_board::phase::serving);
  // Last: waiters for a served pipeline then find all of the above.
  if (front)
    caf::anon_send(front, built.server);
  else
    health->set_served();
  return built.actors;
}

child_facts node::impl::facts_of(const caf::actor_addr& child) {
  std::lock_guard lock{server_mutex};
  const auto found = std::ranges::find(members, child);
  return found == members.end() ? child_facts{}
                                : facts[static_cast<size_t>(found - members.begin())];
}

void node::impl::note_trouble(bool given_up, const std::string& role,
                              std::optional<net::failover_cause> cause) {
  parts->base.lost_role = role.empty() ? "model" : role; // whatever ran, ran on replicas
  health->pauses.lost(parts->base.lost_role);
  tally.ended(parts->base.lost_role, cause);
  if (given_up && cause) metrics->failover(parts->base.lost_role, *cause);
  if (front) caf::anon_send(front, lost_atom_v);
  if (given_up) {
    give_up();
  } else if (health->where() == health_board::phase::serving) {
    health->enter(health_board::phase::rebuilding);
  }
}

void node::impl::build() {
  subtree tree;
  tree.name = "pipeline";
  tree.prepare = [this](caf::event_based_actor* self, auto ready) {
    gather_workers(self, std::move(ready));
  };
  tree.start = [this](caf::event_based_actor* self, uint64_t) { return start_pipeline(self); };
  tree.renew = [this](caf::event_based_actor* self, uint64_t, std::function<bool()> goes_on,
                      std::function<void(renewal)> done) {
    takeover_config c;
    c.parts = parts.get();
    c.goes_on = std::move(goes_on);
    c.start = [=, this] { return start_pipeline(self); };
    {
      std::lock_guard lock{server_mutex};
      c.server = server;
      c.parity_keepers = parity_keepers;
    }
    return take_over(self, std::move(c), std::move(done));
  };
  tree.facts_of = [this](const caf::actor_addr& child) { return facts_of(child); };
  tree.on_trouble = [this](bool given_up, const std::string& role,
                           std::optional<net::failover_cause> cause) {
    note_trouble(given_up, role, cause);
  };
  // MEMBERSHIP reports how WORKERs end. A failure that ends no WORKER may still be the fault of a
  // request. Of the peers of a pipeline the allocator alone is none of its children.
  tree.on_fault = [suspects = parts->suspects] { return suspects->ended_here(); };
  tree.on_spent = [suspects = parts->suspects] { suspects->ended_here(); };
  tree.blames_workers = [kept = parts->kept] { return kept->lives->load(); };
  tree.on_stop = [kept = parts->kept] {
    if (kept->handle) caf::anon_send_exit(kept->handle, caf::exit_reason::user_shutdown);
    kept->handle = nullptr;
  };
  root = system.spawn(supervisor, std::move(tree),
                      scheduler::restart_policy{restarts_max, restart_window});
  if (front) caf::anon_send(front, supervision{root, control->keeper(), control->own()});
}

void node::impl::give_up() {
  health->enter(health_board::phase::failed);
  if (!drained.exchange(true)) end_callback(true);
}

std::vector<vital_actor> node::impl::vital() const {
  auto result = control->vital();
  if (front) result.push_back({"gateway", caf::actor_cast<caf::strong_actor_ptr>(front)});
  if (const auto& aside = parts->base.aside)
    result.push_back({"aside", caf::actor_cast<caf::strong_actor_ptr>(aside)});
  if (root) result.push_back({"supervisor", caf::actor_cast<caf::strong_actor_ptr>(root)});
  return result;
}

void node::impl::watch_vital_actors() {
  watch = system.spawn(warden, warden_config{vital(), [this](const std::string&) { give_up(); }});
}

} // namespace lamella::actors
