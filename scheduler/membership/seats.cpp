#include "scheduler/membership/seats.hpp"

#include <algorithm>

namespace lamella::scheduler {

std::string_view to_string(worker_role role) {
  switch (role) {
  case worker_role::model:
    return "model";
  case worker_role::attention:
    return "attention";
  case worker_role::prefill:
    return "prefill";
  }
  return "model";
}

std::optional<worker_role> role_named(std::string_view text) {
  for (auto role : {worker_role::model, worker_role::attention, worker_role::prefill})
    if (text == to_string(role)) return role;
  return std::nullopt;
}

std::string to_string(const seat_group& x) {
  return std::string{to_string(x.role)} + (x.cell.empty() ? "" : "/" + x.cell);
}

std::string to_string(const seat& x) {
  return std::string{to_string(x.role)} + "/" + std::to_string(x.index);
}

uint16_t number_of(const seat& x) {
  constexpr uint16_t seats_of_role = 0x4000;
  return static_cast<uint16_t>(static_cast<uint16_t>(x.role) * seats_of_role + x.index);
}

void seat_plan::add(const seat_group& group, uint32_t members) {
  for (uint32_t i = 0; members > 0; ++i) {
    const auto has_index = [&](const place& x) {
      return x.where.role == group.role && x.where.index == i;
    };
    if (std::ranges::any_of(places_, has_index)) continue;
    const seat where{group.role, i, group.cell};
    const auto before = removed_.extract({group.role, i});
    places_.insert(std::ranges::lower_bound(places_, where, {}, &place::where),
                   {where, before ? before.mapped() : 0, false});
    --members;
  }
}

void seat_plan::remove(const seat& where) {
  const auto found = std::ranges::find(places_, where, &place::where);
  if (found == places_.end() || found->occupied) return;
  removed_[{where.role, where.index}] = found->incarnation;
  places_.erase(found);
}

std::optional<seat_plan::taken> seat_plan::take(const seat_group& group,
                                                std::optional<uint32_t> preferred) {
  const auto is_free = [&](const place& x) { return x.where.group() == group && !x.occupied; };
  auto found = std::ranges::find_if(places_, [&](const place& x) {
    return is_free(x) && preferred && x.where.index == *preferred;
  });
  if (found == places_.end()) found = std::ranges::find_if(places_, is_free);
  if (found == places_.end()) return std::nullopt;
  found->occupied = true;
  return taken{found->where, ++found->incarnation};
}

bool seat_plan::give_back(const seat& where, uint32_t incarnation) {
  for (auto& x : places_)
    if (x.where == where && x.occupied && x.incarnation == incarnation) {
      x.occupied = false;
      return true;
    }
  return false;
}

uint32_t seat_plan::free_count() const {
  return static_cast<uint32_t>(
      std::ranges::count_if(places_, [](const place& x) { return !x.occupied; }));
}

bool seat_plan::occupied(const seat& where) const {
  return std::ranges::any_of(places_,
                             [&](const place& x) { return x.where == where && x.occupied; });
}

std::optional<seat> seat_plan::find(worker_role role, uint32_t index) const {
  for (const auto& x : places_)
    if (x.where.role == role && x.where.index == index) return x.where;
  return std::nullopt;
}

uint32_t seat_plan::place_of(const seat& x) const {
  return static_cast<uint32_t>(std::ranges::count_if(places_, [&](const place& each) {
    return each.where.group() == x.group() && each.where.index < x.index;
  }));
}

uint32_t seat_plan::members(worker_role role) const {
  return static_cast<uint32_t>(
      std::ranges::count_if(places_, [&](const place& x) { return x.where.role == role; }));
}

uint32_t seat_plan::members_of(const seat_group& group) const {
  return static_cast<uint32_t>(
      std::ranges::count_if(places_, [&](const place& x) { return x.where.group() == group; }));
}

uint32_t seat_plan::taken_count(worker_role role) const {
  return static_cast<uint32_t>(std::ranges::count_if(
      places_, [&](const place& x) { return x.where.role == role && x.occupied; }));
}

std::vector<seat_plan::taken> seat_plan::free_seats() const {
  std::vector<taken> found;
  for (const auto& x : places_)
    if (!x.occupied) found.push_back({x.where, x.incarnation});
  return found;
}

std::set<seat> seat_plan::all() const {
  std::set<seat> result;
  for (const auto& x : places_) result.insert(x.where);
  return result;
}

std::string seat_plan::missing() const {
  std::string text;
  for (const auto& x : places_)
    if (!x.occupied) text += (text.empty() ? "" : ", ") + to_string(x.where);
  return text;
}

} // namespace lamella::scheduler
