#include "actors/kv_rebuild.hpp"

#include "actors/iteration.hpp"
#include "actors/shard_pull.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

constexpr caf::timespan inventory_patience = std::chrono::seconds{5};

/// One rebuild: member after member adds what it holds, because they add to the same slots.
struct rebuild {
  caf::event_based_actor* self = nullptr;
  epoch_members members;
  uint32_t target = 0;
  std::vector<slot_run> runs;
  std::function<void(const rebuild&, const std::optional<std::string>& failure)> done;
  caf::actor_clock::time_point began;
  uint32_t source = 0;           ///< whose turn it is
  std::optional<kv_moved> first; ///< what the side that ended first has moved
};
using rebuild_ptr = std::shared_ptr<rebuild>;

void end(const rebuild_ptr& x, const std::optional<std::string>& failure) {
  if (auto told = std::exchange(x->done, nullptr)) told(*x, failure);
}

void take_from(const rebuild_ptr& x);

void on_moved(const rebuild_ptr& x, uint32_t source, const kv_moved& answer) {
  if (!x->done || source != x->source) return;
  if (!x->first) {
    x->first = answer;
    return;
  }
  if (x->first->digest != answer.digest || x->first->bytes != answer.bytes) {
    end(x, "what came of member " + std::to_string(source) + " is not what it sent");
    return;
  }
  x->first.reset();
  ++x->source;
  take_from(x);
}

/// The next member lends its rows to the target.
void take_from(const rebuild_ptr& x) {
  if (x->source == x->target) ++x->source;
  if (x->source == x->members.shards.size()) {
    end(x, std::nullopt);
    return;
  }
  const auto epoch = x->members.epoch;
  const auto source = x->source;
  const bool is_first = source == (x->target == 0 ? 1 : 0);
  const stream_id stream{scheduler::member_streams + source};
  const auto moved = [x, source](const kv_moved& answer) { on_moved(x, source, answer); };
  const auto failed = [x](const caf::error& e) { end(x, x->self->system().render(e)); };
  const auto patience = lend_deadline + answer_patience;
  x->self
      ->request(x->members.shards[source], patience,
                kv_offer{stream, epoch, 1, x->target, x->runs, 0})
      .then(moved, failed);
  x->self
      ->request(x->members.shards[x->target], patience,
                kv_pull{stream, epoch, 1, x->runs, !is_first})
      .then(moved, failed);
}

void begin(const rebuild_ptr& x, std::vector<slot_run> runs) {
  x->runs = std::move(runs);
  if (x->runs.empty())
    end(x, std::nullopt);
  else
    take_from(x);
}

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
  auto x = std::make_shared<rebuild>();
  x->self = self;
  x->members = members;
  x->target = *target;
  x->began = self->clock().now();
  x->done = [&parts, shards, done = std::move(done)](const rebuild& ended,
                                                     const std::optional<std::string>& failure) {
    const std::chrono::duration<double> took = ended.self->clock().now() - ended.began;
    const auto slots = scheduler::length_of(ended.runs);
    if (failure) {
      spdlog::warn("rebuild by parity failed epoch={} member={} reason=\"{}\"", ended.members.epoch,
                   ended.target, *failure);
    } else {
      spdlog::info("rebuilt by parity epoch={} member={} slots={} seconds={:.3f}",
                   ended.members.epoch, ended.target, slots, took.count());
      parts.parity->rebuilt(ended.members.epoch);
      parts.base.by_parity = slots > 0 && ended.target < shards;
    }
    done();
  };
  self->request(parts.kept->handle, inventory_patience, kv_inventory_ask{})
      .then([x](kv_inventory& now) { begin(x, std::move(now.runs)); },
            [x](const caf::error& e) { end(x, x->self->system().render(e)); });
}

} // namespace lamella::actors
