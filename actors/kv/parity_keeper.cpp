#include "actors/kv/parity_keeper.hpp"

#include "actors/device/iteration.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/parity.hpp"
#include "actors/shared/exceptions.hpp"
#include "actors/shared/parity_whole.hpp"
#include "gpu/runners/kv_checksums.hpp"
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
  auto& st = self->state;
  const auto& c = st.config;
  self->send(c.allocator, kv_release{{c.pin}, c.epoch});
  st.working = false;
  if (st.handed)
    st.handed->deliver(true);
  else
    self->delayed_send(self, how_long, wake_atom_v);
}

/// Asks for slots that lack their parity, or for others, from where that walk stands.
template <class Then>
void next_slots(keeper_ptr self, bool unprotected, uint32_t slots, Then then) {
  auto& st = self->state;
  const auto from = unprotected ? st.made : st.checked;
  self->request(st.config.allocator, answer_limit,
                kv_sweep{st.config.epoch,
                         {st.config.pin, from.holder, from.position, slots, unprotected,
                          st.config.table}})
      .then(
          [=](kv_swept& x) {
            (unprotected ? self->state.made : self->state.checked) = {x.next, x.position};
            then(x);
          },
          [=](caf::error&) { rest(self, idle_rest); }); // of an epoch that is over, or to come
}

/// The allocator knows from now on whether these have their parity.
template <class Then> void tell(keeper_ptr self, std::vector<slot_run> runs, bool have, Then then) {
  const auto& c = self->state.config;
  self->request(c.allocator, answer_limit, kv_protection{c.epoch, std::move(runs), have, c.table})
      .then([=](bool) { then(); }, [=](caf::error&) { rest(self, idle_rest); });
}

/// Log level of an event that is routine where prompts arrive without parity.
spdlog::level::level_enum level_of(const parity_keeper_config& c,
                                   spdlog::level::level_enum else_at = spdlog::level::warn) {
  return c.prompts_lack_it ? spdlog::level::debug : else_at;
}

/// Membership reports a lost worker; if it reports none in time, only the link was lost.
void give_up(keeper_ptr self, const remake_failure& failure) {
  spdlog::warn("parity rebuild failed epoch={} reason=\"{}\"", self->state.config.epoch,
               failure.reason);
  self->state.differs = failure.differs;
  self->delayed_send(self, cut_timeout, abort_atom_v);
}

void make(keeper_ptr self, const kv_swept& x) {
  auto& st = self->state;
  const auto& c = st.config;
  const auto began = self->clock().now();
  if (!st.lacks_since) {
    st.lacks_since = began;
    spdlog::log(level_of(c),
                "parity is missing epoch={} cell={} slots={}: until it is rebuilt, their KV is "
                "recomputed if a "
                "shard is lost",
                c.epoch, c.table, x.unprotected);
  }
  const auto slots = scheduler::length_of(x.runs);
  remake(self,
         {c.epoch, c.members, static_cast<uint32_t>(c.members.size() - 1), x.runs, ++st.number,
          answer_limit, c.metrics},
         [=, runs = x.runs](const std::optional<remake_failure>& failure) {
           if (failure) return give_up(self, *failure);
           tell(self, runs, true, [=] {
             auto& now = self->state;
             now.slots_made += slots;
             if (now.config.metrics) now.config.metrics->parity_rebuilt(slots);
             const auto took = self->clock().now() - began;
             const auto percent = now.config.rebuild_percent;
             rest(self, caf::timespan{took / percent * (100 - percent)});
           });
         });
}

/// The checksums of some slots from every member.
struct checksums {
  std::vector<slot_run> runs;
  std::vector<kv_origin> origins;
  std::vector<std::vector<uint32_t>> of; ///< by member and slot
};

/// The slots whose checksums do not add up; `well` gets the places of the others.
std::vector<slot_run> differing(const checksums& x, uint32_t whole, std::vector<size_t>& well) {
  std::vector<slot_run> result;
  size_t i = 0;
  for (const auto& run : x.runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot, ++i) {
      uint32_t sum = 0;
      for (const auto& member : x.of) sum ^= member[i];
      if (sum == whole)
        well.push_back(i);
      else
        scheduler::append(result, std::vector<slot_run>{{slot, 1}});
    }
  return result;
}

/// Compares the digests of these rows with those of their previous read.
void compare_with_book(const parity_keeper_config& c, const checksums& x,
                       const std::vector<size_t>& well) {
  if (!c.digests) return;
  using finding = digest_book::finding;
  uint64_t compared = 0, lost = 0;
  for (const auto i : well) {
    uint64_t digest = 0xcbf29ce484222325;
    for (size_t member = 0; member + 1 < x.of.size(); ++member) // the parity follows from them
      digest = (digest ^ x.of[member][i]) * 0x100000001b3;
    const auto& origin = x.origins[i];
    const auto found = c.digests->note(origin.sequence, origin.position, c.epoch, digest);
    compared += found == finding::kept || found == finding::lost ? 1 : 0;
    if (found != finding::lost) continue;
    if (lost++ == 0)
      spdlog::error("KV digest changed since it was verified epoch={} sequence={} position={}: the "
                    "rebuild was wrong, or the memory of a worker is corrupt",
                    c.epoch, static_cast<uint64_t>(origin.sequence), origin.position);
    if (c.metrics) c.metrics->kv_damaged(net::kv_damage::rebuild);
  }
  if (c.metrics) c.metrics->digests_compared(compared);
}

void judge(keeper_ptr self, const checksums& x) {
  const auto& c = self->state.config;
  const auto slots = scheduler::length_of(x.runs);
  std::vector<size_t> well;
  auto wrong = differing(x, gpu::checksum_of_whole(c.members.size(), c.slot_bytes), well);
  const auto count = scheduler::length_of(wrong);
  if (c.metrics) c.metrics->parity_checked(slots, count);
  compare_with_book(c, x, well);
  const seconds due{static_cast<double>(slots * c.slot_bytes)
                    / static_cast<double>(c.scrub_bytes_per_second)};
  const auto pause = std::max(std::chrono::duration_cast<caf::timespan>(due), short_rest);
  if (wrong.empty()) return rest(self, pause);
  spdlog::error(
      "parity is wrong epoch={} cell={} slots={} first={}: the memory of an attention worker is "
      "corrupt, check all hosts of the pool; the parity is rebuilt from the shards",
      c.epoch, c.table, count, wrong.front().first);
  tell(self, std::move(wrong), false, [=] { rest(self, short_rest); });
}

void check(keeper_ptr self, const kv_swept& x) {
  struct round {
    size_t left;
    bool failed = false;
    checksums sums;
  };
  const auto& c = self->state.config;
  auto all = std::make_shared<round>();
  all->left = c.members.size();
  all->sums = {x.runs, x.origins, std::vector<std::vector<uint32_t>>(c.members.size())};
  const auto slots = scheduler::length_of(x.runs);
  const auto one_less = [=] {
    if (--all->left > 0) return;
    if (all->failed)
      rest(self, idle_rest);
    else
      judge(self, all->sums);
  };
  for (size_t member = 0; member < c.members.size(); ++member)
    self->request(c.members[member].shard, answer_limit, kv_check{x.runs})
        .then(
            [=](kv_checked& answer) {
              all->failed |= answer.sums.size() != slots;
              all->sums.of[member] = std::move(answer.sums);
              one_less();
            },
            [=](caf::error&) {
              all->failed = true;
              one_less();
            });
}

/// Nothing that can be read lacks its parity: the next slots of the round are checked. `idle`: the
/// rest where there are none.
void scrub(keeper_ptr self, caf::timespan idle) {
  const auto& c = self->state.config;
  if (c.scrub_bytes_per_second == 0) return rest(self, idle);
  const auto slots = slots_of(c, c.scrub_bytes_per_second / chunks_per_second);
  next_slots(self, false, slots, [=](const kv_swept& x) {
    if (x.runs.empty())
      rest(self, idle);
    else
      check(self, x);
  });
}

void turn(keeper_ptr self) {
  if (self->state.stops) return;
  self->state.working = true;
  next_slots(self, true, slots_of(self->state.config, chunk_bytes), [=](const kv_swept& x) {
    auto& st = self->state;
    if (!x.runs.empty()) return make(self, x);
    if (x.unprotected > 0)
      return scrub(self, short_rest); // not there for good yet, as far as is known
    if (const auto since = std::exchange(st.lacks_since, std::nullopt))
      spdlog::log(level_of(st.config, spdlog::level::info),
                  "parity is complete epoch={} cell={} slots={} seconds={:.3f}", st.config.epoch,
                  st.config.table, std::exchange(st.slots_made, 0),
                  seconds{self->clock().now() - *since}.count());
    if (const auto& c = st.config; c.membership && !std::exchange(st.told_whole, true))
      self->send(c.membership, parity_whole_atom_v, c.epoch, c.table);
    scrub(self, idle_rest);
  });
}

caf::result<bool> on_hand_over(keeper_ptr self, const hand_over&) {
  auto& st = self->state;
  st.stops = true;
  if (!st.working) return true;
  st.handed = self->make_response_promise<bool>();
  return *st.handed;
}

} // namespace

caf::behavior parity_keeper(caf::stateful_actor<parity_keeper_state>* self,
                            parity_keeper_config config) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  self->send(self, wake_atom_v);
  return {
      [self](wake_atom) { turn(self); },
      [self](const hand_over& x) { return on_hand_over(self, x); },
      [self](abort_atom) {
        self->quit(caf::make_error(self->state.differs ? ec::rows_differ : ec::link_cut,
                                   "a copy between members of the pool failed"));
      },
  };
}

} // namespace lamella::actors
