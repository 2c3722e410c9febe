// A model replica, a prefill worker and an attention pool of two shards that change their sizes.
#pragma once

#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/protocol/workers.hpp"
#include "tests/actors/membership/membership_world.hpp"

#include <algorithm>
#include <stdexcept>

namespace lamella::actors::test {

struct scaled_world : membership_world {
  std::vector<std::set<scheduler::seat>> resized;
  std::optional<std::string> hopeless; ///< why the service cannot serve
  bool no_memory = false;              ///< for KV of any size, from now on

  /// `least_slots`: of a pool that serves with fewer shards after a loss.
  explicit scaled_world(uint32_t least_slots = 0, uint32_t spares = 0)
      : membership_world{[this, least_slots, spares](membership_config& m) {
          m.seats.add(worker_role::attention, spares);
          m.pool.layout.cells = {{2, 200}};
          m.least_slots = least_slots;
          m.design_of = [this](const scheduler::pool_sizes& x) {
            if (no_memory) throw std::invalid_argument{"no memory"};
            if (12 % x.attention != 0) throw std::invalid_argument{"12 heads"};
            epoch_design design;
            design.shape.replicas = x.model;
            design.shape.shards = x.attention;
            design.shape.prefill_seats = x.prefill;
            design.shape.kv_bytes = x.kv_bytes;
            design.shape.prefill_kv_bytes = x.prefill_kv_bytes;
            const auto bytes = static_cast<uint32_t>(scheduler::kv_bytes_of(x, 0));
            design.pool.layout.cells = {{x.attention, bytes == 0 ? 200 : bytes}};
            design.pool.own_slots = static_cast<uint32_t>(x.prefill_kv_bytes);
            return design;
          };
          m.on_hopeless = [this](const std::string& why) { hopeless = why; };
          m.on_resize = [this](const auto& all) { resized.push_back(all); };
        }} {
    want_epoch();
    model = join("model");
    a0 = join("attention");
    a1 = join("attention");
    prefill = join("prefill");
    REQUIRE(opened.size() == 1);
  }

  std::string resize(const std::string& pool, uint32_t size, uint64_t kv_bytes = kv_as_it_is) {
    return text_of(ask<pool_change>(members, pool_resize{pool, size, {}, kv_bytes}));
  }
  std::string drain(const std::string& who, bool leaves = false) {
    return text_of(ask<pool_change>(members, worker_drain{who, leaves}));
  }
  template <class Answer> std::string text_of(const Answer& answer) {
    settle();
    REQUIRE(answer->came);
    return answer->error ? system.render(answer->error) : answer->value.state;
  }
  pool_change change(size_t pool) {
    const auto status = ask<system_status>(members, status_atom_v);
    settle();
    return status->value.changes.at(pool);
  }

  /// Whether the worker of that seat is to leave, as status tells.
  bool drains(const std::string& seat) {
    const auto status = ask<system_status>(members, status_atom_v);
    settle();
    const auto found = std::ranges::find(status->value.workers, seat, &worker_info::seat);
    return found != status->value.workers.end() && found->draining;
  }

  process model, a0, a1, prefill;
};

/// A pool that serves with half of its slots where it must.
struct short_world : scaled_world {
  short_world() : scaled_world{100} {}
};

} // namespace lamella::actors::test
