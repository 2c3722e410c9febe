#include "actors/node/resizer.hpp"

#include "actors/machine/seat_groups.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "actors/shared/exceptions.hpp"
#include "actors/shared/explain.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using resizer_ptr = caf::stateful_actor<resizer_state>*;
using scheduler::worker_role;

constexpr caf::timespan timeout = std::chrono::seconds{5};
constexpr caf::timespan between_looks = std::chrono::milliseconds{500};

/// As at the start of a service: prompts run on one worker where none is asked for.
uint32_t members_of(const config::settings& x, worker_role role) {
  const auto members = pool_of(x, role).members;
  return role == worker_role::prefill ? std::max(1u, members) : members;
}

void tell_failed(const resize_wish& x, const std::string& why) {
  for (const auto& key : keys_of(x))
    spdlog::error("configuration not applied key={} members={} reason=\"{}\"", key, x.members, why);
}

void end_all(resizer_ptr self, const std::string& why) {
  auto& c = self->state.config;
  for (const auto& x : c.wishes) {
    tell_failed(x, why);
    c.outcomes->failed(x);
  }
  c.wishes.clear();
  c.outcomes->end();
  self->quit();
}

void look_again(resizer_ptr self) { self->delayed_send(self, between_looks, wake_atom_v); }

/// The first of the wishes has its answer.
void end_first(resizer_ptr self, bool failed) {
  auto& c = self->state.config;
  if (failed) c.outcomes->failed(c.wishes.front());
  c.wishes.pop_front();
  self->state.asked = false;
  if (c.wishes.empty()) {
    c.outcomes->end();
    self->quit();
  } else {
    self->send(self, wake_atom_v);
  }
}

void ask_for_first(resizer_ptr self) {
  auto& st = self->state;
  const auto x = st.config.wishes.front();
  st.asked = true;
  self->request(st.config.members, timeout, question_of(x))
      .then([self](const pool_change&) { look_again(self); },
            [self, x](const caf::error& e) {
              tell_failed(x, explain(self->system(), e));
              end_first(self, true);
            });
}

void on_status(resizer_ptr self, const std::vector<pool_change>& changes) {
  auto& st = self->state;
  if (st.config.wishes.empty()) return;
  if (std::ranges::any_of(changes, [](const auto& x) { return x.state == "under way"; }))
    return look_again(self);
  if (!st.asked) return ask_for_first(self);
  const auto& x = st.config.wishes.front();
  const auto pool = pool_name(x);
  const auto now = std::ranges::find_if(changes, [&](const auto& c) { return c.pool == pool; });
  end_first(self, now != changes.end() && now->to == x.members && now->state == "rolled back");
}

} // namespace

std::string pool_name(const resize_wish& x) {
  const std::string pool{scheduler::to_string(x.role)};
  return x.cell.empty() ? pool : pool + "/" + x.cell;
}

std::vector<std::string> keys_of(const resize_wish& x) {
  auto pool = "pools." + std::string{scheduler::to_string(x.role)};
  if (!x.cell.empty()) pool += ".cells." + x.cell;
  std::vector<std::string> keys;
  if (!x.cut || x.from != x.members) keys.push_back(pool + ".members");
  if (x.cut) keys.push_back(pool + ".partition");
  return keys;
}

pool_resize question_of(const resize_wish& x) {
  pool_resize question{pool_name(x), x.members};
  if (x.cut) question.partition = x.cut == config::partition::requests ? "requests" : "heads";
  return question;
}

scheduler::pool_sizes with_wish(const scheduler::pool_sizes& sizes, const resize_wish& x,
                                const config::attention_pools_settings& pool) {
  if (x.cell.empty()) return scheduler::with_size(sizes, x.role, x.members);
  const auto cell = std::distance(pool.cells.begin(), pool.cells.find(x.cell));
  const auto result = scheduler::with_cell(sizes, static_cast<size_t>(cell), x.members);
  return x.cut ? scheduler::with_cut(result, static_cast<size_t>(cell),
                                     x.cut == config::partition::requests)
               : result;
}

void take_back(config::pools_settings& pools, const resize_wish& x) {
  auto& members = !x.cell.empty()                    ? pools.attention.cells.at(x.cell).members
                  : x.role == worker_role::model     ? pools.model.members
                  : x.role == worker_role::attention ? pools.attention.members
                                                     : pools.prefill.members;
  members = x.from;
  if (x.cut_from) pools.attention.cells.at(x.cell).partition = *x.cut_from;
}

scheduler::pool_sizes configured_sizes(const config::settings& x) {
  scheduler::pool_sizes sizes{members_of(x, worker_role::model), x.pools.attention.all_members(),
                              x.pools.prefill.has_seats() ? members_of(x, worker_role::prefill)
                                                          : 0};
  sizes.cells = cell_sizes(x);
  sizes.by_requests = cells_by_requests(x);
  return sizes;
}

std::vector<resize_wish> resizes_between(const config::settings& before,
                                         const config::settings& after) {
  std::vector<resize_wish> result;
  for (const auto role : {worker_role::model, worker_role::attention, worker_role::prefill}) {
    if (role == worker_role::attention && !after.pools.attention.cells.empty()) continue;
    const auto from = pool_of(before, role).members, to = pool_of(after, role).members;
    if (from != to) result.push_back({role, from, members_of(after, role)});
  }
  for (const auto& [name, cell] : after.pools.attention.cells) {
    const auto was = before.pools.attention.cells.find(name);
    if (was == before.pools.attention.cells.end()) continue;
    const bool cut = was->second.partition != cell.partition;
    if (!cut && was->second.members == cell.members) continue;
    auto& x = result.emplace_back(
        resize_wish{worker_role::attention, was->second.members, cell.members, name});
    if (cut) x.cut_from = was->second.partition, x.cut = cell.partition;
  }
  return result;
}

caf::behavior resizer(resizer_ptr self, resizer_config config) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  self->monitor(self->state.config.members);
  self->set_down_handler(
      [self](const caf::down_msg& down) { end_all(self, explain(self->system(), down.reason)); });
  look_again(self);
  return {[self](wake_atom) {
    self->request(self->state.config.members, timeout, status_atom_v)
        .then([self](const system_status& x) { on_status(self, x.changes); },
              [self](const caf::error&) { look_again(self); });
  }};
}

} // namespace lamella::actors
