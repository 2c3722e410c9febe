#include "scheduler/membership/epoch_plan.hpp"

#include "scheduler/cell_tables.hpp"
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

/// A seat for each shard, those of parity last, and the cells whose parity has one. Without a seat
/// for a shard: only those before it.
struct placed_shards {
  std::vector<seat> seats;
  std::vector<uint32_t> parity;
};

placed_shards seats_of_shards(const epoch_shape& shape, const std::set<seat>& ready,
                              const std::vector<seat>& held) {
  std::vector<std::optional<seat>> parts(shape.shards + shape.parity.size());
  auto rest = ready;
  for (uint32_t i = 0; i < std::min(parts.size(), held.size()); ++i)
    if (held[i].group() == group_of_shard(shape, i) && rest.erase(held[i]) > 0) parts[i] = held[i];
  placed_shards result;
  for (uint32_t i = 0; i < parts.size(); ++i) {
    if (!parts[i]) {
      const auto free = std::ranges::find(rest, group_of_shard(shape, i), &seat::group);
      if (free == rest.end() && i < shape.shards) return result;
      if (free == rest.end()) continue;
      parts[i] = *free;
      rest.erase(free);
    }
    result.seats.push_back(*parts[i]);
    if (i >= shape.shards) result.parity.push_back(shape.parity[i - shape.shards]);
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
  const auto on_prefill = [&](uint32_t i) {
    return prefill > 0 ? decoding + i % prefill : i % decoding;
  };
  for (uint32_t i = 0; i < shape.prompt_batches; ++i)
    places.push_back({stream_id{batches + i}, on_prefill(i)});
  for (uint32_t i = 0; i < shape.prefill_streams; ++i)
    places.push_back({stream_id{prefill_streams + i}, on_prefill(i)});
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

std::vector<seat> held_by(const epoch_shape& shape, const epoch_plan& plan) {
  const auto shards = plan.shards.size() - plan.parity.size();
  std::vector<seat> held{plan.shards.begin(), plan.shards.begin() + static_cast<ptrdiff_t>(shards)};
  for (const auto cell : shape.parity) {
    const auto found = std::ranges::find(plan.parity, cell);
    held.push_back(found == plan.parity.end()
                       ? seat{worker_role::attention, ~0u}
                       : plan.shards[shards + static_cast<size_t>(found - plan.parity.begin())]);
  }
  return held;
}

seat_group group_of_shard(const epoch_shape& shape, uint32_t number) {
  if (number >= shape.shards && number - shape.shards < shape.parity.size()) {
    const auto cell = shape.parity[number - shape.shards];
    return {worker_role::attention,
            cell < shape.cell_seats.size() ? shape.cell_seats[cell] : std::string{}};
  }
  const auto tables = members_of_tables(shape.cells, shape.by_requests);
  for (uint32_t table = 0; table < tables.size(); ++table) {
    if (number < tables[table]) {
      const auto cell = cell_of_table(table, shape.cells.size());
      return {worker_role::attention,
              cell < shape.cell_seats.size() ? shape.cell_seats[cell] : std::string{}};
    }
    number -= tables[table];
  }
  return worker_role::attention;
}

std::optional<epoch_plan> plan_epoch(const epoch_shape& shape, const std::set<seat>& ready,
                                     const std::vector<seat>& held, bool whole) {
  epoch_plan plan;
  plan.replicas = first_of(ready, worker_role::model, shape.replicas);
  plan.decoding = static_cast<uint32_t>(plan.replicas.size());
  const auto prompts = first_of(ready, worker_role::prefill, shape.prefill_seats);
  auto placed = seats_of_shards(shape, ready, held);
  plan.shards = std::move(placed.seats);
  plan.parity = std::move(placed.parity);
  if (plan.decoding == 0 || plan.shards.size() < shape.shards) return std::nullopt;
  if (whole
      && (plan.decoding < shape.replicas || prompts.size() < shape.prefill_seats
          || plan.parity.size() < shape.parity.size()))
    return std::nullopt;
  plan.replicas.insert(plan.replicas.end(), prompts.begin(), prompts.end());
  plan.streams = place_streams(shape, plan.decoding, static_cast<uint32_t>(prompts.size()));
  return plan;
}

std::vector<worker_role> lacking_roles(const epoch_shape& shape, const std::set<seat>& ready,
                                       const std::vector<seat>& held) {
  std::vector<worker_role> roles;
  if (first_of(ready, worker_role::model, 1).empty()) roles.push_back(worker_role::model);
  if (seats_of_shards(shape, ready, held).seats.size() < shape.shards)
    roles.push_back(worker_role::attention);
  return roles;
}

std::string part_of(const epoch_plan& plan, const seat& where) {
  const bool attends = where.role == worker_role::attention;
  const auto& list = attends ? plan.shards : plan.replicas;
  const auto found = std::find(list.begin(), list.end(), where);
  if (found == list.end()) return "spare";
  if (attends && list.end() - found <= static_cast<ptrdiff_t>(plan.parity.size())) return "parity";
  return (attends ? "shard " : "replica ") + std::to_string(found - list.begin());
}

bool could_grow(const epoch_shape& shape, const epoch_plan& now, const std::set<seat>& ready) {
  const auto decoding = first_of(ready, worker_role::model, shape.replicas).size();
  const auto prompts = first_of(ready, worker_role::prefill, shape.prefill_seats).size();
  const auto shards = seats_of_shards(shape, ready, held_by(shape, now));
  const bool parity = shards.parity.size() > now.parity.size();
  return decoding > now.decoding || prompts > now.replicas.size() - now.decoding || parity;
}

} // namespace lamella::scheduler
