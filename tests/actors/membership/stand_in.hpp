/// A MEMBERSHIP of which a test says what it does; the rest it does not care about.
#pragma once

#include "actors/membership/cell_roster.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/join.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/traces.hpp"
#include "actors/protocol/workers.hpp"

#include <functional>
#include <utility>

namespace lamella::actors::test {

struct membership_answers {
  std::function<caf::result<join_grant>(const seat_ask&)> seat = [](const seat_ask&) {
    return caf::result<join_grant>{caf::make_error(ec::aborted)};
  };
  std::function<void(const worker_facts&)> facts = [](const worker_facts&) {};
  std::function<caf::result<pool_change>(const pool_resize&)> resize = [](const pool_resize&) {
    return pool_change{};
  };
  std::function<caf::result<pool_change>(const worker_drain&)> drain = [](const worker_drain&) {
    return pool_change{};
  };
  std::function<system_status()> status = [] { return system_status{}; };
};

/// Never opens an epoch: who asks for the first one waits.
inline auto stand_in_membership(membership_answers x) {
  return [x = std::move(x)](membership_actor::pointer self) -> membership_actor::behavior_type {
    return {
        x.seat,
        [facts = x.facts](const worker_facts& told) {
          facts(told);
          return true;
        },
        [self](caf::open_atom, uint64_t) -> caf::result<epoch_members> {
          return self->make_response_promise<epoch_members>();
        },
        [](const epoch_next&) -> caf::result<epoch_members> {
          return caf::make_error(ec::aborted);
        },
        [](const epoch_settled&) {},
        x.resize,
        x.drain,
        [](const pool_balance&) {},
        [](const pool_bounds&) {},
        [](const cells_ptr&) { return true; },
        [](wake_atom, const std::string&, uint32_t) {},
        [](const worker_stopped&) {},
        [](const seat_failing&) {},
        [](caf::tick_atom) {},
        [](probe_atom) {},
        [](const injure&) { return std::string{}; },
        [](const trace_workers_ask&) { return trace_workers{}; },
        [status = x.status](status_atom) { return status(); },
    };
  };
}

} // namespace lamella::actors::test
