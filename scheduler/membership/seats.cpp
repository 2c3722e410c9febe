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

std::string to_string(const seat& x) {
  return std::string{to_string(x.role)} + "/" + std::to_string(x.index);
}

uint16_t number_of(const seat& x) {
  constexpr uint16_t seats_of_role = 0x4000;
  return static_cast<uint16_t>(static_cast<uint16_t>(x.role) * seats_of_role + x.index);
}

void seat_plan::add(worker_role role, uint32_t members) {
  for (uint32_t i = 0; members > 0; ++i) {
    const seat where{role, i};
    const auto at = std::ranges::lower_bound(places_, where, {}, &place::where);
    if (at != places_.end() && at->where == where) continue;
    const auto before = removed_.extract(where);
    places_.insert(at, {where, before ? before.mapped() : 0, false});
    --members;
  }
}

void seat_plan::remove(const seat& where) {
  const auto found = std::ranges::find(places_, where, &place::where);
  if (found == places_.end() || found->occupied) return;
  removed_[where] = found->incarnation;
  places_.erase(found);
}

std::optional<seat_plan::taken> seat_plan::take(worker_role role,
                                                std::optional<uint32_t> preferred) {
  const auto is_free = [&](const place& x) { return x.where.role == role && !x.occupied; };
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

uint32_t seat_plan::members(worker_role role) const {
  return static_cast<uint32_t>(
      std::ranges::count_if(places_, [&](const place& x) { return x.where.role == role; }));
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
