#include "scheduler/membership/epoch_plan.hpp"

#include "scheduler/rotation.hpp"

#include <algorithm>

namespace lamella::scheduler {

namespace {

/// The first `most` seats of a role, in order.
std::vector<seat> first_of(const std::set<seat>& ready, worker_role role, uint32_t most) {
  std::vector<seat> found;
  for (const auto& x : ready)
    if (x.role == role && found.size() < most) found.push_back(x);
  return found;
}

/// A seat for each shard, the one of the parity last; as many as there are workers for.
std::vector<seat> seats_of_shards(const epoch_shape& shape, const std::set<seat>& ready,
                                  const std::vector<seat>& held) {
  std::vector<std::optional<seat>> parts(shape.shards + (shape.parity ? 1 : 0));
  auto rest = ready;
  for (uint32_t i = 0; i < std::min(parts.size(), held.size()); ++i)
    if (held[i].group() == group_of_shard(shape, i) && rest.erase(held[i]) > 0) parts[i] = held[i];
  std::vector<seat> result;
  for (uint32_t i = 0; i < parts.size(); ++i) {
    if (!parts[i]) {
      const auto free = std::ranges::find(rest, group_of_shard(shape, i), &seat::group);
      if (free == rest.end()) return result;
      parts[i] = *free;
      rest.erase(free);
    }
    result.push_back(*parts[i]);
  }
  return result;
}

} // namespace

std::vector<stream_place> place_streams(const epoch_shape& shape, uint32_t decoding,
                                        uint32_t prefill) {
  std::vector<stream_place> places;
  const rotation turns{decoding};
  const auto batches = shape.one_each ? decoding : shape.batches;
  for (uint32_t j = 0; j < batches; ++j)
    for (uint32_t k = 0; k < (shape.rotates ? decoding : 1); ++k)
      places.push_back({stream_id{j}, turns.replica_of(j, k)});
  for (uint32_t i = 0; i < shape.prefill_streams; ++i)
    places.push_back(
        {stream_id{prefill_streams + i}, prefill > 0 ? decoding + i % prefill : i % decoding});
  for (uint32_t i = 0; i < shape.mixed_streams; ++i)
    places.push_back({stream_id{prefill_streams + shape.prefill_streams + i}, i % decoding});
  return places;
}

uint32_t batches_of(const std::vector<stream_place>& places) {
  uint32_t count = 0;
  for (const auto& x : places)
    if (const auto j = static_cast<uint32_t>(x.stream); j < prefill_streams)
      count = std::max(count, j + 1);
  return count;
}

std::vector<uint32_t> places_of(const std::vector<stream_place>& places, stream_id stream) {
  std::vector<uint32_t> result;
  for (const auto& x : places)
    if (x.stream == stream) result.push_back(x.replica);
  return result;
}

seat_group group_of_shard(const epoch_shape& shape, uint32_t number) {
  for (size_t i = 0; i < std::min(shape.cells.size(), shape.cell_seats.size()); ++i) {
    if (number < shape.cells[i]) return {worker_role::attention, shape.cell_seats[i]};
    number -= shape.cells[i];
  }
  return worker_role::attention;
}

std::optional<epoch_plan> plan_epoch(const epoch_shape& shape, const std::set<seat>& ready,
                                     const std::vector<seat>& held, bool whole) {
  epoch_plan plan;
  plan.replicas = first_of(ready, worker_role::model, shape.replicas);
  plan.decoding = static_cast<uint32_t>(plan.replicas.size());
  const auto prompts = first_of(ready, worker_role::prefill, shape.prefill_seats);
  plan.shards = seats_of_shards(shape, ready, held);
  plan.parity = plan.shards.size() > shape.shards;
  if (plan.decoding == 0 || plan.shards.size() < shape.shards) return std::nullopt;
  if (whole
      && (plan.decoding < shape.replicas || prompts.size() < shape.prefill_seats
          || plan.parity < shape.parity))
    return std::nullopt;
  plan.replicas.insert(plan.replicas.end(), prompts.begin(), prompts.end());
  plan.streams = place_streams(shape, plan.decoding, static_cast<uint32_t>(prompts.size()));
  return plan;
}

std::vector<worker_role> lacking_roles(const epoch_shape& shape, const std::set<seat>& ready,
                                       const std::vector<seat>& held) {
  std::vector<worker_role> roles;
  if (first_of(ready, worker_role::model, 1).empty()) roles.push_back(worker_role::model);
  if (seats_of_shards(shape, ready, held).size() < shape.shards)
    roles.push_back(worker_role::attention);
  return roles;
}

std::string part_of(const epoch_plan& plan, const seat& where) {
  const bool attends = where.role == worker_role::attention;
  const auto& list = attends ? plan.shards : plan.replicas;
  const auto found = std::find(list.begin(), list.end(), where);
  if (found == list.end()) return "spare";
  if (attends && plan.parity && found + 1 == list.end()) return "parity";
  return (attends ? "shard " : "replica ") + std::to_string(found - list.begin());
}

bool could_grow(const epoch_shape& shape, const epoch_plan& now, const std::set<seat>& ready) {
  const auto decoding = first_of(ready, worker_role::model, shape.replicas).size();
  const auto prompts = first_of(ready, worker_role::prefill, shape.prefill_seats).size();
  const bool parity =
      shape.parity && !now.parity
      && first_of(ready, worker_role::attention, shape.shards + 1).size() > shape.shards;
  return decoding > now.decoding || prompts > now.replicas.size() - now.decoding || parity;
}

} // namespace lamella::scheduler
