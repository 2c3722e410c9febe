#include "actors/node/kv_rebuild.hpp"

#include "actors/device/iteration.hpp"
#include "actors/device/shard_pull.hpp"
#include "actors/kv/kv_remake.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/explain.hpp"
#include "actors/protocol/kv.hpp"
#include "scheduler/pull_plan.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

constexpr caf::timespan inventory_timeout = std::chrono::seconds{5};

/// A rebuild of one member, some slots at a time: what is made stays made when it is interrupted.
struct rebuild {
  caf::event_based_actor* self = nullptr;
  pipeline_parts* parts = nullptr;
  epoch_members members;
  uint32_t target = 0;
  caf::actor_clock::time_point began;
  std::function<void()> done;
  uint32_t slots = 0;         ///< that have parity, all together
  std::vector<slot_run> left; ///< to be made
  uint64_t number = 0;        ///< of the newest copy

  uint64_t cache() const { return members.caches.at(target); }
};
using rebuild_ptr = std::shared_ptr<rebuild>;

void end(const rebuild_ptr& x, const std::optional<remake_failure>& failure) {
  auto& parts = *x->parts;
  const auto epoch = x->members.epoch;
  const std::chrono::duration<double> took = x->self->clock().now() - x->began;
  if (failure) {
    spdlog::warn("rebuild by parity failed epoch={} member={} slots_left={} reason=\"{}\"", epoch,
                 x->target, scheduler::length_of(x->left), failure->reason);
  } else {
    spdlog::info("rebuilt by parity epoch={} member={} slots={} seconds={:.3f}", epoch, x->target,
                 x->slots, took.count());
    if (parts.parity->rebuilt(epoch)) {
      parts.base.by_parity = x->slots > 0;
      parts.metrics->kv_remade("parity", took.count());
    }
  }
  x->done();
}

void next_slots(const rebuild_ptr& x) {
  if (x->left.empty()) return end(x, std::nullopt);
  const auto& parts = *x->parts;
  const auto bytes = slot_bytes(parts.options, parts.program->spec);
  const auto most = static_cast<uint32_t>(std::max<uint64_t>(parts.rebuild_bytes / bytes, 1));
  const auto all = scheduler::length_of(x->left);
  const auto count = std::min(all, most);
  std::vector<slot_run> now, later;
  scheduler::append_positions(now, x->left, 0, count);
  scheduler::append_positions(later, x->left, count, all - count);
  remake(x->self,
         {x->members.epoch, x->members.shards, x->target, now, ++x->number,
          lend_limit(count * bytes), parts.metrics},
         [=](const std::optional<remake_failure>& failure) {
           if (failure) return end(x, failure);
           x->parts->parity->made(x->cache(), now);
           x->parts->metrics->kv_remade_bytes("parity", count * bytes);
           x->left = later;
           next_slots(x);
         });
}

} // namespace

void fill_by_parity(caf::event_based_actor* self, pipeline_parts& parts,
                    const epoch_members& members, std::function<void()> done) {
  const auto shards = members.sizes.attention; // of this epoch: the pool may have grown or shrunk
  if (parts.parity->shards() != shards) {      // a loss had it take another size: nothing fits
    parts.parity.emplace(shards, members.layout.largest());
    parts.digests = std::make_shared<digest_book>(2 * size_t{members.layout.largest()});
  }
  const auto target =
      parts.parity->open(members.epoch, members.empty, members.shards.size() > shards);
  parts.base.by_parity = false;
  if (!target || !*parts.kept->lives) {
    done();
    return;
  }
  const auto x = std::make_shared<rebuild>(
      rebuild{self, &parts, members, *target, self->clock().now(), std::move(done), 0, {}, 0});
  self->request(parts.kept->handle, inventory_timeout, kv_inventory_ask{})
      .then(
          [x](const kv_inventory& now) {
            x->slots = scheduler::length_of(now.runs);
            x->left = x->parts->parity->left(x->cache(), now.runs);
            if (const auto left = scheduler::length_of(x->left); left < x->slots)
              spdlog::info("rebuild by parity resumed epoch={} member={} slots_left={} of {}",
                           x->members.epoch, x->target, left, x->slots);
            next_slots(x);
          },
          [x](const caf::error& e) { end(x, remake_failure{explain(x->self->system(), e)}); });
}

} // namespace lamella::actors
