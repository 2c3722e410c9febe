/// A small Lamella in one thread: the real control plane and real workers, between them a simulated
/// network, under them simulated devices.
#pragma once

#include "actors/gateway/gateway.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/membership/membership.hpp"
#include "actors/node/kv_rebuild.hpp"
#include "actors/node/pipeline.hpp"
#include "actors/node/roster.hpp"
#include "actors/node/takeover.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/join.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/traces.hpp"
#include "actors/protocol/watches.hpp"
#include "actors/protocol/workers.hpp"
#include "tests/actors/gateway/fake_exchange.hpp"
#include "tests/actors/stage.hpp"
#include "tests/simulation/cluster_shape.hpp"
#include "tests/simulation/own_process.hpp"
#include "tests/simulation/seat_watch.hpp"
#include "tests/simulation/series.hpp"
#include "tests/simulation/worker_box.hpp"

namespace lamella::simulation {

class cluster : public actors::test::stage {
public:
  cluster(const cluster_shape& shape, uint64_t seed)
      : time{sched, seed}, links{time}, world_{system,
                                               time,
                                               links,
                                               actors::membership_actor{},
                                               shape.slowest_step,
                                               shape.slowest_message,
                                               shape.pace,
                                               shape.free_bytes} {
    time.starved_per_mille = shape.starved_per_mille;
    world_.hosts = shape.hosts;
    options_ = settings_of(shape);
    shape_ = shape;
    parts_->workers = std::make_shared<actors::epoch_members>();
    make_parts(shape);
    if (shape.here)
      own.emplace(time, shape.slowest_step, actors::seats_of(options_).all(), shape.free_bytes);
    make_members();
    make_front();
    make_tree();
    if (!own) start_workers();
  }

  /// Every seat is of a process of its own.
  void start_workers() {
    for (const auto& where : actors::seats_of(options_).all())
      workers.push_back(std::make_unique<worker_box>(world_, where));
    for (auto& x : workers) x->start();
  }

  ~cluster() {
    for (auto& x : workers) x->clear();
    if (own) own->die();
    time.feed_all();
    end_all();
    workers.clear();
    root_ = nullptr;
    front_ = nullptr;
    world_.members = nullptr;
    own_seats_ = nullptr;
    parts_->members = nullptr;
    parts_->base.aside = nullptr;
    parts_->workers = std::make_shared<actors::epoch_members>();
    parts_->kept->handle = nullptr;
    server.reset();
    pipeline_.clear();
  }

  /// Lets things happen until `done`, or until that time; says whether it was `done`.
  template <class Condition> bool run_until(Condition done, duration end) {
    const auto last = time.now() + end;
    for (uint64_t steps = 0; !done(); ++steps) {
      if (steps > 5'000'000) return false;
      if (!time.step(last)) return done();
    }
    return true;
  }

  size_t cells() const { return options_.pools.attention.cells.size(); }
  std::string cell_name(size_t number) const {
    return std::next(options_.pools.attention.cells.begin(), static_cast<ptrdiff_t>(number))->first;
  }
  /// Asks for another size of a pool, cut of a cell or slots of each table, or for a worker to
  /// leave. May be refused.
  void scale(const std::string& pool, uint32_t members, const std::string& partition = {},
             uint64_t slots = actors::kv_as_it_is) {
    time.note("scale " + pool + " to " + std::to_string(members) + " " + partition
              + (slots == actors::kv_as_it_is ? "" : " slots " + std::to_string(slots)));
    ask_and_forget(actors::pool_resize{pool, members, partition, slots});
  }
  /// A cell comes, without members; may be refused.
  void add_cell(bool by_requests) {
    const auto name = "c" + std::to_string(std::max<size_t>(1, cells()));
    time.note("new cell " + name);
    const auto next = with_new_cell(options_, name, by_requests);
    auto roster = actors::roster_of(next, {name});
    if (!own) roster.of_children = groups_of(next);
    roster.take = [this, next] {
      options_ = next;
      parts_->options.set(next);
      return true;
    };
    ask_and_forget<bool>(
        actors::cells_ptr{std::make_shared<const actors::cell_roster>(std::move(roster))});
  }
  uint32_t slots() const { return shape_.slots; } ///< of a table at the start, at least
  void drain(const std::string& seat) {
    time.note("drain " + seat);
    ask_and_forget(actors::worker_drain{seat});
  }

  /// Changes of pools that are under way, in words; empty: none.
  std::string changing() {
    const auto status = ask<actors::system_status>(parts_->members, actors::status_atom_v);
    run_until([&] { return status->came; }, 2s);
    for (const auto& x : status->value.changes)
      if (x.state == "under way" || x.state == "short") return x.pool + " changes its size";
    return {};
  }

  /// Workers with a part in an epoch when nobody is missing.
  size_t parts() const {
    const auto whole = parts_->workers->layout.with_parity(actors::parity_cells(options_));
    return parts_->workers->sizes.model + parts_->workers->sizes.prefill + whole.all();
  }

  /// The seat that has that part in the open epoch, as status tells it; empty: none.
  std::string seat_with(const std::string& part) {
    for (int tries = 0; tries < 100; ++tries) {
      const auto status = ask<actors::system_status>(parts_->members, actors::status_atom_v);
      run_until([&] { return status->came; }, 2s);
      for (const auto& x : status->value.workers)
        if (x.part == part) return x.seat;
      run_until([] { return false; }, 10ms);
    }
    return {};
  }

  /// Workers that have a part in the open epoch, as status tells it; none when none is open.
  size_t with_part() {
    const auto status = ask<actors::system_status>(parts_->members, actors::status_atom_v);
    run_until([&] { return status->came; }, 2s);
    return std::ranges::count_if(
        status->value.workers, [](const auto& x) { return !x.part.empty() && x.part != "spare"; });
  }

  void post(const std::shared_ptr<actors::test::fake_exchange>& x) {
    caf::anon_send(front_, actors::exchange_ptr{x});
  }

  /// An actor of the pipeline dies as by a bug of its own; says whether there was one.
  bool kill_actor() {
    std::vector<caf::strong_actor_ptr> alive;
    for (const auto& weak : pipeline_)
      if (auto strong = caf::actor_cast<caf::strong_actor_ptr>(weak)) alive.push_back(strong);
    if (*parts_->kept->lives)
      alive.push_back(caf::actor_cast<caf::strong_actor_ptr>(parts_->kept->handle));
    if (alive.empty()) return false;
    time.note("kill actor");
    caf::anon_send_exit(alive[time.dice().below(alive.size())], caf::exit_reason::kill);
    return true;
  }

  /// The first one of that name dies; says whether there was one.
  bool kill_actor(const std::string& name) {
    auto all = pipeline_;
    if (*parts_->kept->lives) all.push_back(caf::actor_cast<caf::actor_addr>(parts_->kept->handle));
    for (const auto& weak : all) {
      const auto strong = caf::actor_cast<caf::strong_actor_ptr>(weak);
      if (!strong) continue;
      const auto* actor = caf::actor_cast<caf::abstract_actor*>(strong);
      if (name != static_cast<const caf::local_actor*>(actor)->name()) continue;
      time.note("kill " + name);
      caf::anon_send_exit(strong, caf::exit_reason::kill);
      return true;
    }
    return false;
  }

  /// So does a replica or a shard within its worker, which is not to be trusted then.
  void kill_part() {
    std::vector<caf::strong_actor_ptr> all;
    for (const auto& x : parts_->workers->replicas)
      all.push_back(caf::actor_cast<caf::strong_actor_ptr>(x));
    for (const auto& x : parts_->workers->shards)
      all.push_back(caf::actor_cast<caf::strong_actor_ptr>(x));
    if (all.empty()) return;
    time.note("kill part");
    caf::anon_send_exit(all[time.dice().below(all.size())], caf::exit_reason::kill);
  }

  uint64_t slot_bytes() const { return actors::slot_bytes(options_, parts_->program->spec); }
  /// Slots of a lost shard that have been made of the others' since it was lost.
  uint32_t slots_made() const { return parts_->parity->of(0).slots_made(); }

  /// Positions whose K and V came back as others than they were (I9).
  uint64_t digests_lost() const { return parts_->digests ? parts_->digests->losses() : 0; }

  /// Tokens that were computed again and were others.
  double divergences() const { return divergences_now() - divergences_before_; }

  timeline time;
  data_plane links;
  std::vector<std::unique_ptr<worker_box>> workers; ///< none where all seats are `own`
  std::optional<own_process> own;
  actors::service_ptr server;   ///< of the newest pipeline; null before the first
  std::vector<uint64_t> epochs; ///< of the pipelines, in order
  uint32_t troubles = 0;        ///< ends of a pipeline
  bool given_up = false;
  seat_watch seats;
  const actors::gateway_actor& front() const { return front_; }

private:
  void make_parts(const cluster_shape& shape) {
    const auto& loaded = the_model().loaded;
    auto& p = *parts_;
    p.options.set(options_);
    p.program = loaded.program;
    p.own_threads = false;
    p.layout = layout_of(options_, loaded.program->spec, shape);
    if (options_.pools.attention.any_parity()) {
      p.parity.emplace(actors::parity_cells(options_));
      p.rebuild_bytes = 8 * slot_bytes();
      p.digests = std::make_shared<actors::digest_book>(4096);
    }
    p.health = std::make_shared<actors::health_board>(options_.health.iteration_max_age);
    static const auto metrics = std::make_shared<net::metrics>(net::metrics::settings{});
    p.metrics = metrics;
    divergences_before_ = divergences_now();
    auto& s = p.base;
    s.text = loaded.text;
    s.model_name = "integer";
    s.context_tokens = 512;
    s.end_tokens = {end_token};
    s.constraints = std::make_shared<actors::constraint_store>(s.text, s.end_tokens,
                                                               loaded.program->spec.vocabulary);
    s.rules.limits.vocabulary = loaded.text->vocabulary();
    s.metrics = metrics;
  }

  void make_members() {
    actors::membership_config m;
    m.seats = actors::seats_of(options_);
    m.extra_seats = actors::extra_seats_of(options_);
    m.wanted = {"sim", "sim", "sim", 0, true};
    m.shape = actors::shape_of(options_);
    m.pool = actors::pool_terms_of(options_, parts_->program->spec, parts_->layout);
    for (const auto& [name, cell] : options_.pools.attention.cells) m.cells.push_back(name);
    m.kv_heads = parts_->program->spec.kv_heads;
    choose_pipelines(m, shape_, parts_->program->spec);
    m.least_slots = shape_.least_slots;
    if (!own) m.of_children = groups_of(options_);
    m.design_of = [this](const scheduler::pool_sizes& sizes) {
      return design_at(options_, sizes, parts_->program->spec, shape_);
    };
    m.on_resize = [this](const std::set<scheduler::seat>& all) {
      if (own)
        caf::anon_send(own_seats_, std::make_shared<const std::set<scheduler::seat>>(all));
      else
        time.in(0us, [this, all] { keep_seats(all); });
    };
    m.terms_of = [this](const scheduler::seat&, uint32_t) {
      return simulation::terms_of(options_, parts_->program->spec, parts_->layout);
    };
    m.on_worker = [this](const actors::worker_info& x, bool lost, bool) {
      seats.note(x.seat, x.incarnation, lost);
    };
    if (own) {
      own_seats_ = spawn(actors::own_seats, own->config());
      own->listen(m, own_seats_, given_up);
    } else {
      m.dead = world_.dead;
    }
    world_.members = parts_->members = spawn(actors::membership, std::move(m));
    if (own) caf::anon_send(own_seats_, caf::open_atom_v, parts_->members);
  }

  /// Processes of new seats start, and those of seats that were taken away are not started again.
  void keep_seats(const std::set<scheduler::seat>& all) {
    auto unknown = all;
    for (auto& x : workers) {
      unknown.erase(x->where());
      if (x->retired() == all.contains(x->where())) x->retire(!all.contains(x->where()));
    }
    for (const auto& where : unknown) {
      workers.push_back(std::make_unique<worker_box>(world_, where));
      time.in(time.between(1ms, 200ms), [x = workers.back().get()] { x->start(); });
    }
  }

  template <class Answer = actors::pool_change, class Question>
  void ask_and_forget(const Question& what) {
    system.spawn([to = parts_->members, what](caf::event_based_actor* self) {
      self->request(to, 60s, what).then([](const Answer&) {}, [](const caf::error&) {});
    });
  }

  void make_front() {
    parts_->base.aside = spawn(actors::aside, actors::aside_config{1, false});
    actors::gateway_config g;
    g.aside = parts_->base.aside;
    g.health = parts_->health;
    g.metrics = parts_->metrics;
    front_ = spawn(actors::gateway, std::move(g));
    caf::anon_send(front_, parts_->members);
  }

  /// As node_pipeline has it.
  void make_tree() {
    actors::subtree tree;
    tree.name = "pipeline";
    tree.prepare = [this](caf::event_based_actor* self, auto ready) {
      self->request(parts_->members, 60s, caf::open_atom_v, server ? server->epoch : 0)
          .then(
              [this, self, ready](const actors::epoch_members& x) {
                parts_->workers = std::make_shared<actors::epoch_members>(x);
                if (parts_->parity)
                  actors::fill_by_parity(self, *parts_, x, [ready] { ready(std::nullopt); });
                else
                  ready(std::nullopt);
              },
              [self, ready](const caf::error& e) { ready(self->system().render(e)); });
    };
    tree.start = [this](caf::event_based_actor* self, uint64_t) {
      if (parts_->parity) {
        parts_->began = parts_->parity->begin(parts_->workers->empty);
        parts_->workers->empty = parts_->began.lost;
      }
      auto built = actors::build_pipeline(self, *parts_);
      parts_->base.lost_role.clear();
      parts_->base.by_parity = false;
      server = built.server;
      parity_keepers_ = built.parity_keepers;
      epochs.push_back(server->epoch);
      links.forget_before(server->epoch);
      pipeline_.clear();
      if (own) caf::anon_send(own_seats_, actors::begin_atom_v);
      for (const auto& x : built.actors) pipeline_.push_back(caf::actor_cast<caf::actor_addr>(x));
      time.note("epoch");
      caf::anon_send(front_, built.server);
      return built.actors;
    };
    tree.renew = [this, start = tree.start](caf::event_based_actor* self, uint64_t generation,
                                            std::function<bool()> goes_on, auto done) {
      actors::takeover_config c;
      c.parts = parts_.get();
      c.server = server;
      c.parity_keepers = parity_keepers_;
      c.goes_on = std::move(goes_on);
      c.start = [=] { return start(self, generation); };
      return actors::take_over(self, std::move(c), std::move(done));
    };
    tree.on_trouble = [this](bool over, const std::string& role,
                             std::optional<net::failover_cause>) {
      parts_->base.lost_role = role.empty() ? "model" : role;
      caf::anon_send(front_, actors::lost_atom_v);
      ++troubles;
      given_up |= over;
    };
    tree.blames_workers = [kept = parts_->kept] { return kept->lives->load(); };
    tree.on_stop = [kept = parts_->kept] {
      if (kept->handle) caf::anon_send_exit(kept->handle, caf::exit_reason::user_shutdown);
      kept->handle = nullptr;
    };
    root_ = spawn(actors::supervisor, std::move(tree),
                  scheduler::restart_policy{5, std::chrono::seconds{30}});
  }

  /// Of all clusters so far: they share their numbers.
  double divergences_now() const { return metric(*parts_->metrics, "lamella_divergence_total"); }

  worker_world world_;
  double divergences_before_ = 0;
  cluster_shape shape_; ///< at the start
  config::settings options_;
  std::shared_ptr<actors::pipeline_parts> parts_ = std::make_shared<actors::pipeline_parts>();
  actors::own_seats_actor own_seats_;
  std::vector<caf::actor> parity_keepers_; ///< of the newest pipeline
  actors::gateway_actor front_;
  caf::actor root_;
  std::vector<caf::actor_addr> pipeline_;
};

} // namespace lamella::simulation
