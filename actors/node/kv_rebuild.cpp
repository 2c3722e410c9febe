#include "actors/node/kv_rebuild.hpp"

#include "actors/device/iteration.hpp"
#include "actors/device/shard_pull.hpp"
#include "actors/kv/kv_remake.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/shared/explain.hpp"
#include "scheduler/pull_plan.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

constexpr caf::timespan inventory_timeout = std::chrono::seconds{5};

/// A rebuild of one member of a cell, some slots at a time: what is made stays made when it is
/// interrupted.
struct rebuild {
  caf::event_based_actor* self = nullptr;
  pipeline_parts* parts = nullptr;
  epoch_members members;
  uint32_t cell = 0;
  uint32_t target = 0; ///< its place in the cell
  caf::actor_clock::time_point began;
  std::function<void()> done;
  uint32_t slots = 0;         ///< that have parity, all together
  std::vector<slot_run> left; ///< to be made
  uint64_t copies = 0;        ///< number of the newest

  uint32_t number() const { return members.layout.members_of(cell).at(target); }
  uint64_t cache() const { return members.caches.at(number()); }
  scheduler::parity_ledger& ledger() const { return parts->parity->of(cell); }
};
using rebuild_ptr = std::shared_ptr<rebuild>;

void end(const rebuild_ptr& x, const std::optional<remake_failure>& failure) {
  auto& parts = *x->parts;
  const auto epoch = x->members.epoch;
  const std::chrono::duration<double> took = x->self->clock().now() - x->began;
  if (failure) {
    spdlog::warn("rebuild by parity failed epoch={} member={} slots_left={} reason=\"{}\"", epoch,
                 x->number(), scheduler::length_of(x->left), failure->reason);
  } else {
    spdlog::info("rebuilt by parity epoch={} member={} slots={} seconds={:.3f}", epoch, x->number(),
                 x->slots, took.count());
    if (x->ledger().rebuilt(epoch)) {
      parts.base.by_parity |= x->slots > 0;
      parts.metrics->kv_remade("parity", took.count());
    }
  }
  x->done();
}

void next_slots(const rebuild_ptr& x) {
  if (x->left.empty()) return end(x, std::nullopt);
  const auto& parts = *x->parts;
  const auto bytes = token_bytes(*parts.options.now(), parts.program->spec)
                     / x->members.layout.cells[x->cell].members;
  const auto most = static_cast<uint32_t>(std::max<uint64_t>(parts.rebuild_bytes / bytes, 1));
  const auto all = scheduler::length_of(x->left);
  const auto count = std::min(all, most);
  std::vector<slot_run> now, later;
  scheduler::append_positions(now, x->left, 0, count);
  scheduler::append_positions(later, x->left, count, all - count);
  remake(x->self,
         {x->members.epoch, members_of_cell(x->members.layout, x->cell, x->members.shards),
          x->target, now, ++x->copies, lend_limit(count * bytes), parts.metrics},
         [=](const std::optional<remake_failure>& failure) {
           if (failure) return end(x, failure);
           x->ledger().made(x->cache(), now);
           x->parts->metrics->kv_remade_bytes("parity", count * bytes);
           x->left = later;
           next_slots(x);
         });
}

/// Asks which slots there are, and rebuilds them.
void begin(const rebuild_ptr& x) {
  x->self->request(x->parts->kept->handle, inventory_timeout, kv_inventory_ask{x->cell})
      .then(
          [x](const kv_inventory& now) {
            x->slots = scheduler::length_of(now.runs);
            x->left = x->ledger().left(x->cache(), now.runs);
            if (const auto left = scheduler::length_of(x->left); left < x->slots)
              spdlog::info("rebuild by parity resumed epoch={} member={} slots_left={} of {}",
                           x->members.epoch, x->number(), left, x->slots);
            next_slots(x);
          },
          [x](const caf::error& e) { end(x, remake_failure{explain(x->self->system(), e)}); });
}

} // namespace

void fill_by_parity(caf::event_based_actor* self, pipeline_parts& parts,
                    const epoch_members& members, std::function<void()> done) {
  parts.parity->add(parity_cells(*parts.options.now()));
  // A loss had a cell take another size: digests of other members differ.
  if (!parts.parity->fits(members.layout))
    parts.digests = std::make_shared<digest_book>(2 * members.layout.slots());
  const auto targets = parts.parity->open(members.epoch, members.layout, members.empty);
  parts.base.by_parity = false;
  if (targets.empty() || !*parts.kept->lives) {
    done();
    return;
  }
  const auto one_less = [left = std::make_shared<size_t>(targets.size()), done = std::move(done)] {
    if (--*left == 0) done();
  };
  for (const auto& [cell, target] : targets)
    begin(std::make_shared<rebuild>(
        rebuild{self, &parts, members, cell, target, self->clock().now(), one_less, 0, {}, 0}));
}

} // namespace lamella::actors
