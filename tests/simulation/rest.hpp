/// What a simulated cluster still does when nobody wants anything of it any more.
#pragma once

#include "actors/protocol/admission.hpp"
#include "actors/protocol/kv.hpp"
#include "tests/simulation/cluster.hpp"

namespace lamella::simulation {

/// What is not at rest, or not what it should be when everybody is there, in words; empty: nothing
/// (I5, I6). Takes milliseconds of virtual time.
inline std::string busy_with(cluster& c) {
  const auto usage = c.ask<actors::kv_usage>(c.server->allocator, actors::status_atom_v);
  auto running = std::make_shared<std::pair<uint64_t, uint64_t>>(9, 9);
  c.spawn([&, running](caf::event_based_actor* self) {
    self->request(c.server->scheduler, caf::infinite, actors::status_atom_v)
        .then(
            [running](const actors::queue_status& x) {
              *running = {x.running, x.waiting};
            },
            [](caf::error&) {});
  });
  c.run_until([&] { return usage->came && running->first != 9; }, 1ms);
  std::string busy;
  if (!usage->came) busy += "the allocator does not answer; ";
  uint64_t left = usage->value.free + usage->value.cached;
  for (auto slots : usage->value.slots) left -= slots;
  for (auto used : usage->value.used)
    if (used > 0) busy += std::to_string(used) + " slots; ";
  if (left != 0 || usage->value.references != usage->value.held) busy += "slots do not add up; ";
  if (running->first + running->second > 0)
    busy += std::to_string(running->first) + " run, " + std::to_string(running->second) + " wait; ";
  for (const auto& w : c.workers) {
    if (!w->alive() && !w->retired()) busy += w->name() + " is missing; ";
    if (w->alive() && w->retired()) busy += w->name() + " has no seat and lives; ";
    if (!w->idle()) busy += w->name() + " works; ";
  }
  if (c.own && !c.own->idle()) busy += "this process works; ";
  if (const auto parts = c.with_part(); parts != c.parts())
    busy += std::to_string(parts) + " of " + std::to_string(c.parts()) + " have a part; ";
  if (const auto change = c.changing(); !change.empty()) busy += change + "; ";
  return busy;
}

/// Waits until nothing is left, for minutes of virtual time; what is left then.
inline std::string comes_to_rest(cluster& c) {
  std::string busy = "nobody has looked";
  for (int tries = 0; tries < 800 && !busy.empty(); ++tries) {
    c.run_until([] { return false; }, 500ms);
    busy = busy_with(c);
  }
  return busy;
}

} // namespace lamella::simulation
