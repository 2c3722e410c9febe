#include "actors/decode/quarantine.hpp"

#include "actors/protocol/batches.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using verdict = suspect_board::verdict;

verdict verdict_of(const global_scheduler_state& st, sequence_id x) {
  return st.config.suspects ? st.config.suspects->of(scheduler::request_of(x)) : verdict::free;
}

/// The replica on which suspects are apart from the others; nothing where there is only one.
std::optional<uint32_t> place_apart(const global_scheduler_state& st) {
  const auto& replicas = st.config.replica_of_batch;
  if (replicas.empty()) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(replicas);
  return least == most ? std::nullopt : std::optional{most};
}

/// May others run while a group is under test?
bool others_wait(const global_scheduler_state& st) {
  return st.config.suspects->others_wait() || !place_apart(st);
}

/// Whether a sequence with that verdict may run in that batch while a group is under test.
bool may_run_in(const global_scheduler_state& st, verdict x, uint32_t batch) {
  if (x != verdict::free && x != verdict::apart) return false;
  if (others_wait(st)) return x == verdict::apart;
  return (st.config.replica_of_batch.at(batch) == *place_apart(st)) == (x == verdict::apart);
}

} // namespace

bool must_wait(const global_scheduler_state& st, sequence_id first) {
  const auto x = verdict_of(st, first);
  return x == verdict::wait
         || (x == verdict::free && st.config.suspects && st.config.suspects->hunting()
             && others_wait(st));
}

bool is_poisonous(const global_scheduler_state& st, sequence_id first) {
  return verdict_of(st, first) == verdict::poisonous;
}

std::optional<std::vector<uint64_t>> load_for(const global_scheduler_state& st, sequence_id first) {
  if (!st.config.suspects || !st.config.suspects->hunting()) return st.seats;
  const auto mine = verdict_of(st, first);
  auto load = st.seats;
  for (uint32_t j = 0; j < load.size(); ++j)
    if (!may_run_in(st, mine, j)) load[j] = st.config.seats_per_batch;
  if (mine != verdict::apart) return load;
  // Sequences that are still there have been asked to leave.
  const bool alone = std::ranges::all_of(st.seated, [&](const auto& x) {
    const auto theirs = verdict_of(st, x.first);
    return theirs == verdict::apart
           || (theirs == verdict::free && may_run_in(st, theirs, x.second));
  });
  return alone ? std::optional{load} : std::nullopt;
}

std::optional<uint32_t> worker_on_side(const global_scheduler_state& st, sequence_id first,
                                       uint32_t base, uint32_t count, uint64_t turn) {
  const auto& c = st.config;
  const bool hunting = c.suspects && c.suspects->hunting();
  if (!hunting || others_wait(st) || c.replica_of_prefill.size() < base + count)
    return std::nullopt;
  const bool apart = verdict_of(st, first) == verdict::apart;
  for (uint32_t i = 0; i < count; ++i) {
    const auto worker = base + static_cast<uint32_t>((turn + i) % count);
    if ((c.replica_of_prefill[worker] == *place_apart(st)) == apart) return worker;
  }
  return std::nullopt; // shared: an end of it will tell, and then the others wait
}

bool make_room(scheduler_ptr self) {
  auto& st = self->state;
  if (!st.config.suspects) return false;
  const bool hunting = st.config.suspects->hunting();
  bool somebody = false;
  for (const auto& [sequence, batch] : st.seated) {
    const auto x = verdict_of(st, sequence);
    if (hunting ? may_run_in(st, x, batch) : x == verdict::free) continue;
    somebody = true;
    // A sequence still in prefill is in no batch yet: it is asked again.
    if (const auto found = st.batches.find(batch); found != st.batches.end())
      self->send(found->second, batch_leave{sequence, true});
  }
  return somebody;
}

} // namespace lamella::actors
