#include "scheduler/scaling_policy.hpp"

#include <algorithm>

namespace lamella::scheduler {

namespace {

constexpr double same_load = 1.1; ///< times the load before: not more load, within its noise
constexpr double less_load = 0.8; ///< times the load that was too much: worth another try
constexpr double memory = 10;     ///< cool-downs until another try at the same load

/// `steps` allowed sizes above, within the bounds; the members themselves where there is none.
uint32_t larger(const pool_look& x, uint32_t steps) {
  auto to = x.members;
  for (auto count = x.members + 1; steps > 0 && count <= x.most; ++count)
    if (x.allows(count)) {
      to = count;
      --steps;
    }
  return to;
}

/// `steps` allowed sizes below, likewise; one step where it is known what that leads to.
uint32_t smaller(const pool_look& x, uint32_t steps) {
  if (x.lower > 0)
    return x.lower < std::max(1u, x.least) ? x.members : std::min(x.lower, x.members);
  auto to = x.members;
  for (auto count = x.members; steps > 0 && count-- > std::max(1u, x.least);)
    if (x.allows(count)) {
      to = count;
      --steps;
    }
  return to;
}

bool too_few(const pool_look& x, const std::string& why) {
  return x.members < x.least || !why.empty();
}

/// Whether it has been so for `hold`, this look included; begins to count where it has not.
bool held(std::optional<scaling_seconds>& from, bool now_so, scaling_seconds now,
          scaling_seconds hold) {
  if (!now_so)
    from.reset();
  else if (!from)
    from = now;
  return from && now - *from >= hold;
}

} // namespace

scaling_decision scaling_policy::look(const scaling_look& x) {
  scaling_decision decision;
  bool under_way = false;
  for (const auto pool : scaled_pools) {
    const auto& p = x.pools[pool];
    if (!p.exists()) continue;
    under_way = under_way || p.wanted > 0;
    const auto& state = states_[pool];
    const bool wished = state.wished > 0 && state.members == p.members;
    decision.wish[pool] = p.wanted > 0 ? p.wanted : wished ? state.wished : p.members;
  }
  if (!settled_ || under_way) settle(x.at);
  if (under_way) return decision;
  note_changes(x);

  const auto why = too_small(x, settings_);
  by_pool<wish> wishes;
  const bool any_small = note_small(x, why);
  for (const auto pool : scaled_pools) {
    if (!x.pools[pool].exists()) continue;
    wishes[pool] = any_small ? up(x, pool, why[pool]) : down(x, pool);
    if (any_small) states_[pool].large.reset();
    decision.wish[pool] = states_[pool].wished = wishes[pool].to;
    decision.why[pool] = wishes[pool].reason;
  }
  decision.step = choose(x, wishes);
  if (decision.step) settle(x.at);
  return decision;
}

/// Looks from now on count alone.
void scaling_policy::settle(scaling_seconds now) {
  settled_ = now;
  for (auto& state : states_.all) {
    state.small.reset();
    state.small_looks = 0;
    state.large.reset();
  }
}

bool scaling_policy::note_small(const scaling_look& x, const by_pool<std::string>& why) {
  const auto is_small = [&](scaled_pool pool) {
    return x.pools[pool].exists() && too_few(x.pools[pool], why[pool]);
  };
  const bool any = std::ranges::any_of(scaled_pools, is_small);
  for (const auto pool : scaled_pools) {
    auto& state = states_[pool];
    if (any && is_small(pool)) {
      if (!state.small) state.small = x.at;
      state.small_last = x.at;
      ++state.small_looks;
    } else if (!any || (state.small && x.at - *state.small_last >= settings_.hold_up)) {
      state.small.reset();
      state.small_looks = 0;
    }
  }
  return any;
}

bool scaling_policy::is_smallest(const scaling_look& x, scaled_pool pool) const {
  return std::ranges::none_of(scaled_pools, [&](scaled_pool other) {
    const auto& p = x.pools[other];
    return p.exists() && p.acts == x.pools[pool].acts && larger(p, 1) > p.members
           && states_[other].small_looks > states_[pool].small_looks;
  });
}

/// Members that came or went, by our steps or otherwise.
void scaling_policy::note_changes(const scaling_look& x) {
  for (const auto pool : scaled_pools) {
    auto& state = states_[pool];
    const auto members = x.pools[pool].members;
    if (members == state.members) continue;
    const bool fewer = members < state.members && state.load_then > 0;
    state.fell_to = fewer ? members : 0;
    state.fell_at = state.load_then;
    state.load_then = 0;
    state.members = state.wished = members;
    settle(x.at);
  }
}

void scaling_policy::note_too_small(pool_state& state, const scaling_look& x) const {
  const auto known = state.bad.find(state.members);
  const bool for_ever = known != state.bad.end() && !known->second.until;
  if (state.fell_to == state.members && x.tokens_per_s <= state.fell_at * same_load)
    state.bad[state.members] = {state.fell_at, std::nullopt};
  else if (!for_ever)
    state.bad[state.members] = {x.tokens_per_s, x.at + settings_.cool_down * memory};
}

/// Whether a pool of that size, or of a larger one, was too small at this load.
bool scaling_policy::is_bad(const pool_state& state, uint32_t to, const scaling_look& x) {
  return std::any_of(state.bad.lower_bound(to), state.bad.end(), [&](const auto& size) {
    const auto& [tokens_per_s, until] = size.second;
    return x.tokens_per_s > tokens_per_s * less_load && (!until || x.at < *until);
  });
}

scaling_policy::wish scaling_policy::up(const scaling_look& x, scaled_pool pool,
                                        const std::string& why) {
  const auto& p = x.pools[pool];
  auto& state = states_[pool];
  const bool below = p.members < p.least;
  const bool ready = too_few(p, why) && x.at - *state.small >= settings_.hold_up;
  if (!ready || !is_smallest(x, pool))
    return {state.small ? std::max(state.wished, p.members) : p.members};
  if (!below) note_too_small(state, x);
  return {larger(p, settings_.step),
          below ? "the pool keeps at least " + std::to_string(p.least) : why, true};
}

scaling_policy::wish scaling_policy::down(const scaling_look& x, scaled_pool pool) {
  const auto& p = x.pools[pool];
  auto& state = states_[pool];
  const auto to = smaller(p, settings_.step);
  const bool above = p.members > p.most;
  std::optional<std::string> why;
  if (to < p.members && above && kv_fits(x, settings_, pool, to))
    why = "the pool may have " + std::to_string(p.most);
  else if (to < p.members && !above && !is_bad(state, to, x))
    why = would_do(x, settings_, pool, to);
  if (!held(state.large, why.has_value(), x.at, settings_.hold_down))
    return {state.large ? std::min(state.wished, p.members) : p.members};
  state.load_then = x.tokens_per_s;
  return {to, *why, true};
}

/// More members first, KV before work; of fewer members, those without KV first.
std::optional<scaling_step> scaling_policy::choose(const scaling_look& x,
                                                   const by_pool<wish>& wishes) const {
  const auto step = [&](scaled_pool pool, bool more) -> std::optional<scaling_step> {
    const auto& p = x.pools[pool];
    const auto& w = wishes[pool];
    if (!p.exists() || !p.acts || !w.ready || w.to == p.members || (w.to > p.members) != more)
      return std::nullopt;
    if (x.at - *settled_ < (more ? settings_.cool_up : settings_.cool_down)) return std::nullopt;
    return scaling_step{pool, p.members, w.to, w.reason};
  };
  for (const auto pool : {scaled_pool::attention, scaled_pool::model, scaled_pool::prefill})
    if (auto found = step(pool, true)) return found;
  for (const auto pool : {scaled_pool::prefill, scaled_pool::model, scaled_pool::attention})
    if (auto found = step(pool, false)) return found;
  return std::nullopt;
}

} // namespace lamella::scheduler
