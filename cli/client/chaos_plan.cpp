#include "cli/client/chaos_plan.hpp"

#include "cli/client.hpp"
#include "cli/commands.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace lamella::cli {

namespace {

std::string text_at(const json_value& x, const char* name) { return text_or(x.find(name), ""); }

const json_value::array& list_at(const json_value& x, const char* name) {
  static const json_value::array none;
  const auto* found = x.find(name);
  const auto* list = found == nullptr ? nullptr : found->get_if<json_value::array>();
  return list == nullptr ? none : *list;
}

} // namespace

std::vector<chaos_seat> worker_seats(const json_value& status) {
  const auto own = std::pair{text_or(find_path(status, {"gateway", "host"}), ""),
                             number_or(find_path(status, {"gateway", "pid"}), -1)};
  std::vector<chaos_seat> seats;
  for (const auto& w : list_at(status, "workers"))
    if (std::pair{text_at(w, "host"), number_or(w.find("pid"), 0)} != own)
      seats.push_back({text_at(w, "seat"), text_at(w, "role"), text_at(w, "name")});
  for (const auto& w : list_at(status, "missing"))
    seats.push_back({text_at(w, "seat"), text_at(w, "role"), {}});
  std::ranges::sort(seats, {}, &chaos_seat::seat);
  return seats;
}

chaos_plan::chaos_plan(const std::vector<chaos_seat>& seats, const std::string& target,
                       uint64_t seed)
    : draws_{seed} {
  std::set<std::string> known;
  for (const auto& x : seats) {
    const auto by_name = x.role + "/" + x.name;
    if (target.empty() || target == x.seat || target == x.role || target == by_name)
      seats_.push_back(x.seat);
    known.insert({x.seat, x.role});
    if (!x.name.empty()) known.insert(by_name);
  }
  if (!seats_.empty()) return;
  if (seats.empty()) { // the service says why nobody can be injured
    seats_.push_back(target);
    return;
  }
  std::string list;
  for (const auto& x : known) list += (list.empty() ? "" : ", ") + x;
  throw command_error{exit_usage, "--target: there is no worker process '" + target + "'",
                      "worker processes: " + list};
}

std::string chaos_plan::next() { return seats_[draws_() % seats_.size()]; }

} // namespace lamella::cli
