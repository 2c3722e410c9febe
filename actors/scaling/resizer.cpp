#include "actors/scaling/resizer.hpp"

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

constexpr caf::timespan resizer_timeout = std::chrono::seconds{5};
constexpr caf::timespan between_looks = std::chrono::milliseconds{100};

/// As at the start of a service: prompts run on one worker where none is asked for.
uint32_t members_of(const config::settings& x, worker_role role) {
  const auto members = pool_of(x, role).members;
  return role == worker_role::prefill ? std::max(1u, members) : members;
}

/// KV of each member in bytes; 0: not given, or it has none of its own.
uint64_t kv_bytes_of(const config::settings& x, worker_role role) {
  if (role == worker_role::attention) return scheduler::kv_bytes_of(configured_sizes(x), 0);
  const bool own = role == worker_role::prefill && x.pools.prefill_owns_kv();
  return own ? x.pools.prefill.kv_bytes.value_or(0) : 0;
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

/// All know which changes wait for others.
void tell_waiting(resizer_ptr self) {
  const auto& [c, asked, name] = self->state;
  const auto first = c.wishes.begin() + (asked && !c.wishes.empty() ? 1 : 0);
  c.outcomes->wait({first, c.wishes.end()});
}

void look_again(resizer_ptr self) { self->delayed_send(self, between_looks, wake_atom_v); }

/// Cells that were to lose their last member keep it where the one that was to take over has none.
void leave_full(resizer_config& c, const resize_wish& failed) {
  std::erase_if(c.wishes, [&](const resize_wish& x) {
    if (x.cell.empty() || x.members > 0 || x.keeps_members) return false;
    tell_failed(x, pool_name(failed) + " has not changed");
    c.outcomes->failed(x);
    return true;
  });
}

/// The first of the wishes has its answer.
void end_first(resizer_ptr self, bool failed) {
  auto& c = self->state.config;
  const auto done = c.wishes.front();
  if (failed) c.outcomes->failed(done);
  c.wishes.pop_front();
  if (failed && done.members > 0 && !done.cell.empty()) leave_full(c, done);
  self->state.asked = false;
  if (c.wishes.empty()) {
    c.outcomes->end();
    self->quit();
  } else {
    tell_waiting(self);
    self->send(self, wake_atom_v);
  }
}

void ask_for_first(resizer_ptr self) {
  auto& st = self->state;
  const auto x = st.config.wishes.front();
  st.asked = true;
  self->request(st.config.members, resizer_timeout, question_of(x))
      .then(
          [self](const pool_change& answer) {
            if (answer.state != "under way") return end_first(self, false); // it has them already
            tell_waiting(self);
            look_again(self);
          },
          [self, x](const caf::error& e) {
            const auto why = explain(self->system(), e);
            if (why.find(other_change) != std::string::npos) { // it began after the look
              self->state.asked = false;
              return look_again(self);
            }
            tell_failed(x, why);
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
  const bool same = now != changes.end() && (x.keeps_members || now->to == x.members);
  end_first(self, same && now->state == "rolled back");
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
  if (x.cut) keys.push_back(pool + ".partition");
  if (x.changes_kv()) keys.push_back(x.kv_of_all ? "kv.bytes" : pool + ".kv_bytes");
  if (x.from != x.members || keys.empty()) keys.insert(keys.begin(), pool + ".members");
  return keys;
}

pool_resize question_of(const resize_wish& x) {
  pool_resize question{pool_name(x), x.keeps_members ? members_as_they_are : x.members};
  if (x.cut) question.partition = x.cut == config::partition::requests ? "requests" : "heads";
  if (x.changes_kv()) question.kv_bytes = x.kv;
  return question;
}

scheduler::pool_sizes with_wish(const scheduler::pool_sizes& sizes, const resize_wish& x,
                                const config::attention_pools_settings& pool) {
  if (x.cell.empty()) {
    auto result = scheduler::with_size(sizes, x.role, x.members);
    if (!x.changes_kv()) return result;
    if (x.role == worker_role::attention) return scheduler::with_kv_bytes(result, 0, x.kv);
    result.prefill_kv_bytes = x.kv;
    return result;
  }
  const auto cell = static_cast<size_t>(std::distance(pool.cells.begin(), pool.cells.find(x.cell)));
  auto result = scheduler::with_cell(sizes, cell, x.members);
  if (x.cut) result = scheduler::with_cut(result, cell, x.cut == config::partition::requests);
  if (x.changes_kv()) result = scheduler::with_kv_bytes(result, cell, x.kv);
  return result;
}

void take_back(config::settings& settings, const resize_wish& x) {
  auto& pools = settings.pools;
  auto& members = !x.cell.empty()                    ? pools.attention.cells.at(x.cell).members
                  : x.role == worker_role::model     ? pools.model.members
                  : x.role == worker_role::attention ? pools.attention.members
                                                     : pools.prefill.members;
  members = x.from;
  if (x.cut_from) pools.attention.cells.at(x.cell).partition = *x.cut_from;
  if (!x.changes_kv()) return;
  auto& kv = x.kv_of_all                        ? settings.kv.bytes
             : !x.cell.empty()                  ? pools.attention.cells.at(x.cell).kv_bytes
             : x.role == worker_role::attention ? pools.attention.kv_bytes
                                                : pools.prefill.kv_bytes;
  kv = x.kv_from == 0 ? std::nullopt : std::optional{x.kv_from};
}

scheduler::pool_sizes configured_sizes(const config::settings& x) {
  scheduler::pool_sizes sizes{members_of(x, worker_role::model), x.pools.attention.all_members(),
                              x.pools.prefill.has_seats() ? members_of(x, worker_role::prefill)
                                                          : 0};
  sizes.cells = cell_sizes(x);
  sizes.by_requests = cells_by_requests(x);
  sizes.kv_bytes = kv_bytes_of_cells(x);
  sizes.prefill_kv_bytes = x.pools.prefill.kv_bytes.value_or(0);
  return sizes;
}

std::vector<resize_wish> resizes_between(const config::settings& before,
                                         const config::settings& after) {
  std::vector<resize_wish> result;
  for (const auto role : {worker_role::model, worker_role::attention, worker_role::prefill}) {
    if (role == worker_role::attention && !after.pools.attention.cells.empty()) continue;
    const auto from = pool_of(before, role).members, to = pool_of(after, role).members;
    const auto kv_from = kv_bytes_of(before, role), kv = kv_bytes_of(after, role);
    if (from == to && kv_from == kv) continue;
    const auto members = members_of(after, role);
    auto& x = result.emplace_back(resize_wish{role, from == to ? members : from, members});
    x.kv_from = kv_from, x.kv = kv;
    x.keeps_members = from == to;
    x.kv_of_all = role == worker_role::attention && !before.pools.attention.kv_bytes
                  && !after.pools.attention.kv_bytes;
  }
  const auto sizes_before = configured_sizes(before), sizes = configured_sizes(after);
  for (size_t i = 0; const auto& [name, cell] : after.pools.attention.cells) {
    const auto number = i++;
    const auto was = before.pools.attention.cells.find(name);
    if (was == before.pools.attention.cells.end()) continue;
    const bool cut = was->second.partition != cell.partition;
    const auto kv_from = scheduler::kv_bytes_of(sizes_before, number),
               kv = scheduler::kv_bytes_of(sizes, number);
    const bool other_kv = kv_from != kv;
    if (!cut && !other_kv && was->second.members == cell.members) continue;
    auto& x = result.emplace_back(
        resize_wish{worker_role::attention, was->second.members, cell.members, name});
    if (cut) x.cut_from = was->second.partition, x.cut = cell.partition;
    x.kv_from = kv_from, x.kv = kv;
    x.keeps_members = was->second.members == cell.members;
    x.kv_of_all = !was->second.kv_bytes && !cell.kv_bytes;
  }
  // Sequences of a cell that loses its last member go to others, which get theirs before.
  std::stable_partition(result.begin(), result.end(),
                        [](const resize_wish& x) { return x.members > 0 || x.keeps_members; });
  return result;
}

void empty_cells(std::vector<resize_wish>& wishes, const std::vector<std::string>& cells) {
  for (const auto& name : cells) {
    const auto found = std::ranges::find(wishes, name, &resize_wish::cell);
    auto x = found == wishes.end() ? resize_wish{worker_role::attention, 0, 0, name} : *found;
    if (found != wishes.end()) wishes.erase(found);
    x.keeps_members = false;
    wishes.push_back(std::move(x));
  }
}

std::vector<pool_change> queued_changes(const resize_outcomes& outcomes) {
  std::vector<pool_change> result;
  for (const auto& x : outcomes.waiting()) {
    const auto question = question_of(x);
    auto& to =
        result.emplace_back(pool_change{question.pool, x.from, question.members, "queued",
                                        "a reload asked for it: it waits for other changes"});
    to.to_partition = question.partition;
    to.to_kv_bytes = question.kv_bytes;
  }
  return result;
}

caf::behavior resizer(resizer_ptr self, resizer_config config) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  tell_waiting(self);
  self->monitor(self->state.config.members);
  self->set_down_handler(
      [self](const caf::down_msg& down) { end_all(self, explain(self->system(), down.reason)); });
  look_again(self);
  return {[self](wake_atom) {
    self->request(self->state.config.members, resizer_timeout, status_atom_v)
        .then([self](const system_status& x) { on_status(self, x.changes); },
              [self](const caf::error&) { look_again(self); });
  }};
}

} // namespace lamella::actors
