#include "actors/scaling/autoscaler.hpp"

#include "actors/machine/seat_groups.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "actors/scaling/pool_work.hpp"
#include "actors/scaling/step_refusals.hpp"
#include "actors/shared/events.hpp"
#include "actors/shared/exceptions.hpp"
#include "actors/shared/explain.hpp"
#include "actors/shared/named_cells.hpp"
#include "scheduler/cell_scaling.hpp"
#include "scheduler/cell_tables.hpp"
#include "scheduler/kv/kv_values.hpp"
#include "scheduler/scaling_text.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <optional>

namespace lamella::actors {

namespace {

struct autoscaler_state {
  /// Answers to one tick's questions.
  struct round {
    std::shared_ptr<const system_status> status;
    kv_usage kv;
    queue_status queue;
    uint64_t batches = 0;
    uint32_t left = 3;
    bool failed = false;
  };
  std::optional<autoscaler_config> config;
  scheduler::by_pool<scheduler::pool_look> pools;
  std::optional<scheduler::scaling_policy> policy;
  std::chrono::seconds window{0}; ///< of what is measured
  std::optional<pool_work> work;
  scheduler::by_pool<uint32_t> wished;
  step_refusals refusals;
  std::ofstream trace;
  bool looking = false;
  const char* name = "autoscaler";
};

using autoscaler_ptr = autoscaler_actor::stateful_pointer<autoscaler_state>;
using round_ptr = std::shared_ptr<autoscaler_state::round>;
using scheduler::scaled_pool;

constexpr caf::timespan autoscaler_interval = std::chrono::seconds{1};
/// For each question of a look: MEMBERSHIP waits a second for workers that do not answer.
constexpr caf::timespan autoscaler_timeout = std::chrono::seconds{5};

scheduler::worker_role role_of(scaled_pool pool) {
  return *scheduler::role_named(scheduler::name_of(pool));
}

scheduler::scaling_seconds seconds_of(std::chrono::milliseconds x) { return x; }

static_assert(load_window::longest >= scheduler::longest_window);

/// Members that serve.
uint32_t serving(const pool_change& x) {
  return x.state == "none" || x.state == "done" ? x.to : x.from;
}

/// Members of the pools, and what changes are under way.
void give_sizes(scheduler::by_pool<scheduler::pool_look>& pools, const system_status& status,
                const config::settings& options) {
  for (const auto pool : scheduler::scaled_pools) {
    auto& x = pools[pool];
    const auto change = std::ranges::find(status.changes, scheduler::name_of(pool),
                                          [](const pool_change& y) { return y.pool; });
    if (!x.exists() || change == status.changes.end()) continue;
    x.members = serving(*change);
    x.wanted = change->state == "under way" ? change->to : 0;
    if (change->state == "short") // workers are lacking
      x.most = std::max(x.least, std::min(x.most, x.members));
    if (!pool_of(options, role_of(pool)).autoscaled()) x.least = x.most = std::max(1u, x.members);
  }
}

/// The cells of the attention pool by their numbers, as MEMBERSHIP knows them. One that is not
/// configured any more, or not yet, keeps its members.
std::vector<scheduler::cell_look> cells_of(const config::settings& options,
                                           const autoscaler_state::round& heard) {
  std::vector<scheduler::cell_look> cells;
  for (const auto& [name, change] : named_cells(*heard.status)) {
    auto& x = cells.emplace_back();
    x.members = serving(change);
    x.by_requests = change.partition == "requests";
    const auto configured = options.pools.attention.cells.find(name);
    const bool scales = configured != options.pools.attention.cells.end();
    x.stays = !scales;
    if (scales) x.least = configured->second.least, x.most = configured->second.most;
  }
  for (uint32_t i = 0; i < heard.kv.slots.size(); ++i) {
    const auto cell = scheduler::cell_of_table(i, cells.size());
    if (cell >= cells.size()) continue; // it is new
    cells[cell].slots += heard.kv.slots[i];
    cells[cell].used += heard.kv.used.at(i);
  }
  return cells;
}

/// Whether the KV in use fits into the slots that are left. One step may take several members, of
/// a cell whose members have more KV than others.
bool kv_fits(const autoscaler_state& st, const scheduler::scaling_look& x, bool too_large,
             const scheduler::cell_look& cell, uint32_t members) {
  const auto& s = st.policy->settings();
  const double share = static_cast<double>(cell.members - members) / cell.members;
  const double left = x.kv_slots - share * static_cast<double>(cell.slots);
  return x.kv_used + x.kv_wanted <= left * s.kv_high * (too_large ? 1 : 1 - s.margin);
}

/// The cells that would change their size, if the pool is to.
struct cell_steps {
  std::optional<scheduler::cell_step> up, down;
};

/// The next sizes of cells, whatever the pool may have. The KV in use is known.
cell_steps note_cells(const autoscaler_state& st, const autoscaler_state::round& heard,
                      scheduler::scaling_look& look) {
  auto& x = look.pools[scaled_pool::attention];
  const auto cells = cells_of(st.config->options, heard);
  const auto heads = st.config->kv_heads;
  const auto fewer = [&](const scheduler::cell_step& step) {
    return cells[step.cell].members - step.members;
  };
  // The emptiest cell whose KV fits into the others.
  const auto may_go = [&](const scheduler::cell_step& step) {
    return x.members > fewer(step)
           && kv_fits(st, look, x.members > x.most, cells[step.cell], step.members);
  };
  const cell_steps steps{scheduler::step_of_cells(cells, heads, true, x.least, x.most),
                         scheduler::step_of_cells(cells, heads, false, x.least, x.most, may_go)};
  if (!steps.up) no_larger(x);
  if (steps.down)
    x.lower = x.members - fewer(*steps.down);
  else
    no_smaller(x);
  return steps;
}

/// `steps`: of cells, where there are some.
scheduler::scaling_look look_of(autoscaler_ptr self, const autoscaler_state::round& heard,
                                cell_steps& steps) {
  auto& st = self->state;
  const auto now = self->clock().now();
  const auto& options = st.config->options;
  scheduler::scaling_look x;
  x.at = now.time_since_epoch();
  x.pools = st.pools;
  give_sizes(x.pools, *heard.status, options);
  st.refusals.note(heard.status->changes, x.at, st.policy->settings());
  st.refusals.limit(x.pools, x.at);
  st.work->note(now, *heard.status);
  for (const auto pool : scheduler::scaled_pools)
    if (auto& p = x.pools[pool]; p.exists())
      p.busy = st.work->of(scheduler::name_of(pool), p.members).busy;
  const auto members = [&](scaled_pool pool) { return x.pools[pool].members; };
  x.model_work = st.work->of("model", members(scaled_pool::model)).mean;
  // An iteration whose slices run in turn occupies each replica for its part.
  if (heard.status->pipeline.rotates) x.model_work *= members(scaled_pool::model);
  // Each iteration waits for the last of its shards.
  x.attention_work = st.work->of("attention", members(scaled_pool::attention)).most;
  for (const auto n : heard.kv.slots) x.kv_slots += n;
  for (const auto n : heard.kv.used) x.kv_used += n;
  // The allocator does not hear of those who wait no longer.
  if (heard.queue.waiting > 0) x.kv_wanted = static_cast<double>(heard.kv.wanted);
  if (!options.pools.attention.cells.empty()) steps = note_cells(st, heard, x);
  x.queue = static_cast<uint32_t>(heard.queue.waiting);
  x.queue_age = std::chrono::milliseconds{heard.queue.oldest_ms};
  x.batches = static_cast<uint32_t>(heard.batches);
  const auto seen = st.config->load->read(now, st.window);
  x.tbt_p99 = seen.tbt_p99;
  x.ttft_p99 = seen.ttft_p99;
  x.tokens_per_s = seen.tokens_per_s;
  x.tbt_target = seconds_of(options.autoscale.tbt_target);
  x.ttft_target = seconds_of(options.autoscale.ttft_target);
  return x;
}

void trace(autoscaler_state& st, const std::string& line) {
  if (!st.trace.is_open()) return;
  st.trace << line << '\n' << std::flush;
  if (st.trace) return;
  spdlog::warn("autoscaler trace not written path={}",
               st.config->options.autoscale.trace_file.string());
  st.trace.close();
}

void tell_wishes(autoscaler_state& st, const scheduler::scaling_look& x,
                 const scheduler::scaling_decision& decision) {
  const auto& wish = decision.wish;
  for (const auto pool : scheduler::scaled_pools) {
    if (!pool_of(st.config->options, role_of(pool)).autoscaled()) continue;
    if (st.config->metrics) st.config->metrics->set_pool_wish(scheduler::name_of(pool), wish[pool]);
    const auto before = std::exchange(st.wished[pool], wish[pool]);
    if (before == wish[pool] || x.pools[pool].acts) continue;
    std::vector<event_field> fields{{"pool", scheduler::name_of(pool)},
                                    {"members", x.pools[pool].members},
                                    {"wish", wish[pool]}};
    if (const auto& why = decision.why[pool]; !why.empty()) fields.emplace_back("reason", why);
    tell(event_kind::pool_wish, std::move(fields));
  }
}

/// A step in the words of `lamella scale`.
struct named_step {
  pool_resize resize;
  uint32_t from = 0; ///< members of that pool or cell
};

/// Of a pool with cells one of these changes its size; nothing: no cell has a size within the
/// bounds.
std::optional<named_step> named(const autoscaler_state& st, const autoscaler_state::round& heard,
                                const cell_steps& steps, const scheduler::scaling_step& step) {
  const auto& options = st.config->options;
  if (step.pool != scaled_pool::attention || options.pools.attention.cells.empty())
    return named_step{{scheduler::name_of(step.pool), step.to}, step.from};
  const auto& cell = step.to > step.from ? steps.up : steps.down;
  if (!cell) return std::nullopt;
  const auto [name, change] = named_cells(*heard.status).at(cell->cell);
  return named_step{{"attention/" + name, cell->members}, serving(change)};
}

void take(autoscaler_ptr self, const autoscaler_state::round& heard, const cell_steps& steps,
          const scheduler::scaling_step& step) {
  const auto x = named(self->state, heard, steps, step);
  if (!x) return;
  tell(event_kind::pool_autoscaling, {{"pool", x->resize.pool},
                                      {"from", x->from},
                                      {"to", x->resize.members},
                                      {"reason", step.reason}});
  self->request(self->state.config->members, autoscaler_timeout, x->resize)
      .then([self, what = x->resize, step](
                const pool_change&) { self->state.refusals.begun(step, what.pool, what.members); },
            [self, what = x->resize, step](const caf::error& e) {
              auto& st = self->state;
              st.refusals.refused(step, self->clock().now().time_since_epoch(),
                                  st.policy->settings());
              spdlog::warn("autoscaling refused pool={} to={} reason=\"{}\"", what.pool,
                           what.members, explain(self->system(), e));
            });
}

/// All have answered, or nobody will.
void decide(autoscaler_ptr self, const autoscaler_state::round& heard) {
  auto& st = self->state;
  st.looking = false;
  if (heard.failed) return;
  cell_steps steps;
  const auto x = look_of(self, heard, steps);
  trace(st, scheduler::text_of(x));
  const auto decision = st.policy->look(x);
  tell_wishes(st, x, decision);
  if (decision.step) take(self, heard, steps, *decision.step);
}

void one_less(autoscaler_ptr self, const round_ptr& x) {
  if (--x->left == 0) decide(self, *x);
}

void look(autoscaler_ptr self) {
  auto& st = self->state;
  const auto server = st.config->newest();
  if (st.looking || !server) return;
  st.looking = true;
  const auto x = std::make_shared<autoscaler_state::round>();
  x->batches = server->batches.size();
  // While a pipeline is rebuilt there is nothing to see.
  const auto failed = [self, x](const caf::error&) {
    x->failed = true;
    one_less(self, x);
  };
  self->request(st.config->members, autoscaler_timeout, status_atom_v)
      .then(
          [self, x](system_status& status) {
            x->status = std::make_shared<const system_status>(std::move(status));
            one_less(self, x);
          },
          failed);
  self->request(server->allocator, autoscaler_timeout, status_atom_v)
      .then(
          [self, x](kv_usage& usage) {
            x->kv = std::move(usage);
            one_less(self, x);
          },
          failed);
  self->request(server->scheduler, autoscaler_timeout, status_atom_v)
      .then(
          [self, x](const queue_status& queue) {
            x->queue = queue;
            one_less(self, x);
          },
          failed);
}

void open_trace(autoscaler_state& st) {
  const auto& path = st.config->options.autoscale.trace_file;
  if (path.empty()) return;
  st.trace.open(path, std::ios::app);
  if (!st.trace.is_open()) spdlog::warn("autoscaler trace not written path={}", path.string());
  trace(st, scheduler::text_of(st.policy->settings()));
}

autoscaler_actor::behavior_type
autoscaler(autoscaler_actor::stateful_pointer<autoscaler_state> self, autoscaler_config config) {
  end_on_exceptions(self);
  auto& st = self->state;
  st.config.emplace(std::move(config));
  st.pools = scaled_pools_of(st.config->options, st.config->kv_heads);
  st.policy.emplace(scaling_settings_of(st.config->options));
  st.window = scheduler::window_of(st.policy->settings());
  st.work.emplace(st.window);
  open_trace(st);
  self->send(self, caf::tick_atom_v);
  return {
      [self](caf::tick_atom) {
        self->delayed_send(self, autoscaler_interval, caf::tick_atom_v);
        look(self);
      },
      [self](const pools_ptr& pools) {
        auto& now = self->state;
        now.config->options.pools = *pools;
        now.pools = scaled_pools_of(now.config->options, now.config->kv_heads);
      },
  };
}

} // namespace

scheduler::by_pool<scheduler::pool_look> scaled_pools_of(const config::settings& options,
                                                         uint32_t kv_heads) {
  scheduler::by_pool<scheduler::pool_look> pools;
  for (const auto which : scheduler::scaled_pools) {
    if (which == scaled_pool::prefill && !options.pools.prefill.has_seats()) continue;
    auto& x = pools[which];
    const auto& pool = pool_of(options, role_of(which));
    const bool scaled = pool.autoscaled();
    x.members =
        which == scaled_pool::attention ? options.pools.attention.all_members() : pool.members;
    x.least = scaled ? pool.least : x.members;
    x.most = std::max(1u, scaled ? pool.most : x.members);
    const bool remote = which == scaled_pool::attention
                            ? options.pools.attention.any(config::placement::remote)
                            : pool.placement == config::placement::remote;
    x.acts = scaled && !remote;
  }
  const auto& attention = options.pools.attention;
  if (attention.partition == config::partition::heads && attention.cells.empty())
    pools[scaled_pool::attention].heads = kv_heads;
  return pools;
}

scheduler::scaling_settings scaling_settings_of(const config::settings& options) {
  const auto& autoscale = options.autoscale;
  scheduler::scaling_settings x;
  x.kv_high = autoscale.kv_high_percent / 100.0;
  x.kv_low = autoscale.kv_low_percent / 100.0;
  x.cool_up = seconds_of(autoscale.cool_up);
  x.cool_down = seconds_of(autoscale.cool_down);
  return x;
}

autoscaler_actor start_autoscaler(caf::actor_system& system, autoscaler_config config) {
  return system.spawn(autoscaler, std::move(config));
}

} // namespace lamella::actors
