#include "actors/parity_keeper.hpp"

#include "actors/iteration.hpp"
#include "actors/kv_remake.hpp"
#include "gpu/kv_checksums.hpp"
#include "scheduler/slot_pool.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using keeper_ptr = caf::stateful_actor<parity_keeper_state>*;
using seconds = std::chrono::duration<double>;

constexpr caf::timespan answer_limit = std::chrono::seconds{30};
/// When there was nothing to do.
constexpr caf::timespan idle_rest = std::chrono::seconds{1};
/// Between two checks, however small; and until holders may have been heard of.
constexpr caf::timespan short_rest = std::chrono::milliseconds{50};
/// What is read at a member between two rests, at most.
constexpr uint64_t chunk_bytes = 2 << 20;
/// At the rate of the scrubber so often in a second, where that is less.
constexpr uint64_t chunks_per_second = 4;

uint32_t slots_of(const parity_keeper_config& c, uint64_t bytes) {
  return static_cast<uint32_t>(std::max<uint64_t>(1, std::min(bytes, chunk_bytes) / c.slot_bytes));
}

/// The next turn comes then; until then nothing is pinned.
void rest(keeper_ptr self, caf::timespan how_long) {
  const auto& c = self->state.config;
  self->send(c.allocator, kv_release{{c.pin}, c.epoch});
  self->delayed_send(self, how_long, wake_atom_v);
}

/// Asks for slots that lack their parity, or for others, from where that walk stands.
template <class Then> void next_slots(keeper_ptr self, bool bare, uint32_t slots, Then then) {
  auto& st = self->state;
  const auto from = bare ? st.made : st.checked;
  self->request(st.config.allocator, answer_limit,
                kv_sweep{st.config.epoch, st.config.pin, from.holder, from.position, slots, bare})
      .then(
          [=](kv_swept& x) {
            (bare ? self->state.made : self->state.checked) = {x.next, x.position};
            then(x);
          },
          [=](caf::error&) { rest(self, idle_rest); }); // of an epoch that is over, or to come
}

/// The allocator knows from now on whether these have their parity.
template <class Then> void tell(keeper_ptr self, std::vector<slot_run> runs, bool have, Then then) {
  const auto& c = self->state.config;
  self->request(c.allocator, answer_limit, kv_protection{c.epoch, std::move(runs), have})
      .then([=](bool) { then(); }, [=](caf::error&) { rest(self, idle_rest); });
}

/// Of a lost worker others tell; when nothing has happened soon, it was the link alone.
void give_up(keeper_ptr self, const std::string& reason) {
  spdlog::warn("parity cannot be made epoch={} reason=\"{}\"", self->state.config.epoch, reason);
  self->delayed_send(self, cut_patience, abort_atom_v);
}

void make(keeper_ptr self, const kv_swept& x) {
  auto& st = self->state;
  const auto& c = st.config;
  const auto began = self->clock().now();
  if (!st.lacks_since) {
    st.lacks_since = began;
    spdlog::warn("parity is missing epoch={} slots={}: until it is made, a lost shard costs their "
                 "sequences a new computation",
                 c.epoch, x.bare);
  }
  const auto slots = scheduler::length_of(x.runs);
  remake(self,
         {c.epoch, c.members, static_cast<uint32_t>(c.members.size() - 1), x.runs, ++st.number,
          answer_limit},
         [=, runs = x.runs](const std::optional<std::string>& failure) {
           if (failure) return give_up(self, *failure);
           tell(self, runs, true, [=] {
             auto& now = self->state;
             now.slots_made += slots;
             if (now.config.numbers) now.config.numbers->parity_rebuilt(slots);
             const auto took = self->clock().now() - began;
             const auto percent = now.config.rebuild_percent;
             rest(self, caf::timespan{took / percent * (100 - percent)});
           });
         });
}

/// Checksums of all members: the slots whose do not add up.
std::vector<slot_run> differing(const std::vector<slot_run>& runs, std::vector<uint32_t> sums,
                                uint32_t whole) {
  std::vector<slot_run> result;
  size_t i = 0;
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot, ++i)
      if (sums[i] != whole) scheduler::append(result, std::vector<slot_run>{{slot, 1}});
  return result;
}

void judge(keeper_ptr self, const std::vector<slot_run>& runs, std::vector<uint32_t> sums) {
  const auto& c = self->state.config;
  const auto slots = scheduler::length_of(runs);
  auto wrong =
      differing(runs, std::move(sums), gpu::checksum_of_whole(c.members.size(), c.slot_bytes));
  const auto count = scheduler::length_of(wrong);
  if (c.numbers) c.numbers->parity_checked(slots, count);
  const seconds due{static_cast<double>(slots * c.slot_bytes)
                    / static_cast<double>(c.scrub_bytes_per_second)};
  const auto pause = std::max(std::chrono::duration_cast<caf::timespan>(due), short_rest);
  if (wrong.empty()) return rest(self, pause);
  spdlog::error("parity is wrong epoch={} slots={} first={}: the memory of an attention worker has "
                "changed, check them all; it is made anew of what the shards have",
                c.epoch, count, wrong.front().first);
  tell(self, std::move(wrong), false, [=] { rest(self, short_rest); });
}

void check(keeper_ptr self, const kv_swept& x) {
  struct round {
    size_t left;
    bool failed = false;
    std::vector<uint32_t> sums;
  };
  const auto& c = self->state.config;
  auto all = std::make_shared<round>();
  all->left = c.members.size();
  all->sums.resize(scheduler::length_of(x.runs));
  const auto one_less = [=, runs = x.runs] {
    if (--all->left > 0) return;
    if (all->failed)
      rest(self, idle_rest);
    else
      judge(self, runs, std::move(all->sums));
  };
  for (const auto& member : c.members)
    self->request(member, answer_limit, kv_check{x.runs})
        .then(
            [=](const kv_checked& answer) {
              all->failed |= answer.sums.size() != all->sums.size();
              for (size_t i = 0; !all->failed && i < all->sums.size(); ++i)
                all->sums[i] ^= answer.sums[i];
              one_less();
            },
            [=](caf::error&) {
              all->failed = true;
              one_less();
            });
}

/// Nothing lacks its parity: the next slots of the round are checked.
void scrub(keeper_ptr self) {
  const auto& c = self->state.config;
  if (c.scrub_bytes_per_second == 0) return rest(self, idle_rest);
  const auto slots = slots_of(c, c.scrub_bytes_per_second / chunks_per_second);
  next_slots(self, false, slots, [=](const kv_swept& x) {
    if (x.runs.empty())
      rest(self, idle_rest);
    else
      check(self, x);
  });
}

void turn(keeper_ptr self) {
  next_slots(self, true, slots_of(self->state.config, chunk_bytes), [=](const kv_swept& x) {
    auto& st = self->state;
    if (!x.runs.empty()) return make(self, x);
    if (x.bare > 0) return rest(self, short_rest); // of holders that have not been heard of
    if (const auto since = std::exchange(st.lacks_since, std::nullopt))
      spdlog::info("parity is whole epoch={} slots={} seconds={:.3f}", st.config.epoch,
                   std::exchange(st.slots_made, 0), seconds{self->clock().now() - *since}.count());
    scrub(self);
  });
}

} // namespace

caf::behavior parity_keeper(caf::stateful_actor<parity_keeper_state>* self,
                            parity_keeper_config config) {
  self->state.config = std::move(config);
  self->send(self, wake_atom_v);
  return {
      [self](wake_atom) { turn(self); },
      [self](abort_atom) {
        self->quit(caf::make_error(ec::link_cut, "a copy between members of the pool failed"));
      },
  };
}

} // namespace lamella::actors
