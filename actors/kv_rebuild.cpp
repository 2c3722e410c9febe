#include "actors/kv_rebuild.hpp"

#include "actors/iteration.hpp"
#include "actors/kv_remake.hpp"
#include "actors/shard_pull.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

constexpr caf::timespan inventory_patience = std::chrono::seconds{5};

} // namespace

void fill_by_parity(caf::event_based_actor* self, pipeline_parts& parts,
                    const epoch_members& members, std::function<void()> done) {
  const auto shards = parts.options.pools.attention.members;
  const auto target =
      parts.parity->open(members.epoch, members.empty, members.shards.size() > shards);
  parts.base.by_parity = false;
  if (!target || !*parts.kept->lives) {
    done();
    return;
  }
  const auto ended =
      [&parts, self, target = *target, epoch = members.epoch, began = self->clock().now(),
       done = std::move(done)](uint32_t slots, const std::optional<std::string>& failure) {
        const std::chrono::duration<double> took = self->clock().now() - began;
        if (failure) {
          spdlog::warn("rebuild by parity failed epoch={} member={} reason=\"{}\"", epoch, target,
                       *failure);
        } else {
          spdlog::info("rebuilt by parity epoch={} member={} slots={} seconds={:.3f}", epoch,
                       target, slots, took.count());
          parts.parity->rebuilt(epoch);
          parts.base.by_parity = slots > 0;
        }
        done();
      };
  self->request(parts.kept->handle, inventory_patience, kv_inventory_ask{})
      .then(
          [=, shards = members.shards, epoch = members.epoch, target = *target](kv_inventory& now) {
            const auto slots = scheduler::length_of(now.runs);
            remake(self,
                   {epoch, shards, target, std::move(now.runs), 1, lend_deadline + answer_patience},
                   [=](const auto& failure) { ended(slots, failure); });
          },
          [=](const caf::error& e) { ended(0, self->system().render(e)); });
}

} // namespace lamella::actors
