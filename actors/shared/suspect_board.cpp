#include "actors/shared/suspect_board.hpp"

#include "actors/protocol/values.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

using scheduler::in_flight;
using scheduler::request_of;

void suspect_board::on_change(std::function<void()> told) {
  const std::lock_guard lock{mutex_};
  told_ = std::move(told);
}

/// Tells of a change, after the lock is free: who is told may ask at once.
void suspect_board::tell(std::unique_lock<std::mutex>& lock) {
  const auto told = told_;
  lock.unlock();
  if (told) told();
}

/// Tokens of the request's sequence that has the fewest: one that kills goes no further, its
/// sisters may.
uint32_t suspect_board::tokens_of(sequence_id sequence) const {
  const auto epoch = places_.at(sequence).epoch;
  const auto request = request_of(sequence);
  auto least = places_.at(sequence).tokens;
  for (auto it = places_.lower_bound(scheduler::sequence_of(request, 0));
       it != places_.end() && request_of(it->first) == request; ++it)
    if (it->second.epoch == epoch) least = std::min(least, it->second.tokens);
  return least;
}

void suspect_board::runs(sequence_id sequence, uint64_t epoch, stream_id where, uint32_t tokens) {
  std::unique_lock lock{mutex_};
  places_[sequence] = {epoch, where, tokens};
  if (suspects_.on_tokens(request_of(sequence), tokens_of(sequence))) tell(lock);
}

void suspect_board::has(sequence_id sequence, uint32_t tokens) {
  std::unique_lock lock{mutex_};
  const auto found = places_.find(sequence);
  if (found == places_.end()) return;
  found->second.tokens = tokens;
  if (suspects_.on_tokens(request_of(sequence), tokens_of(sequence))) tell(lock);
}

void suspect_board::stopped(sequence_id sequence, pause why) {
  std::unique_lock lock{mutex_};
  places_.erase(sequence);
  const auto request = request_of(sequence);
  const auto other = places_.lower_bound(scheduler::sequence_of(request, 0));
  if (why == pause::brief || (other != places_.end() && request_of(other->first) == request))
    return;
  // Its test would last as long as its reader likes.
  if (why == pause::done ? suspects_.forget(request) : suspects_.excuse(request)) tell(lock);
}

void suspect_board::over(request_id request) {
  std::unique_lock lock{mutex_};
  std::erase_if(places_, [&](const auto& x) { return request_of(x.first) == request; });
  poisonous_.erase(request);
  if (suspects_.forget(request)) tell(lock);
}

std::vector<in_flight> suspect_board::flights_of(uint64_t epoch,
                                                 const std::vector<stream_id>* streams) const {
  std::vector<in_flight> found;
  for (const auto& [sequence, x] : places_)
    if (x.epoch == epoch
        && (streams == nullptr
            || std::find(streams->begin(), streams->end(), x.stream) != streams->end()))
      found.push_back({request_of(sequence), x.tokens});
  return found;
}

suspect_board::budget suspect_board::suspects(const pending_end& end) {
  if (end.flights.empty() || end.epoch <= newest_end_)
    return suspects_.hunting() ? budget::excused : budget::counts;
  newest_end_ = end.epoch;
  const bool hunted = suspects_.hunting();
  if (const auto found = suspects_.on_end(end.flights)) {
    poisonous_.insert(*found);
    spdlog::error("poison request found request={}", static_cast<uint64_t>(*found));
    return budget::explained;
  }
  if (suspects_.hunting())
    spdlog::warn("worker crashed in_flight={} {}", end.flights.size(),
                 hunted ? "the poison-request search continues"
                        : "a poison request is suspected; suspects are isolated");
  return suspects_.hunting() ? budget::excused : budget::counts;
}

void suspect_board::lost(const lost_part& part) {
  std::unique_lock lock{mutex_};
  pending_end end{part.epoch, flights_of(part.epoch, &part.streams)};
  const auto known = std::find_if(known_.begin(), known_.end(),
                                  [&](const auto& x) { return x.first == part.pid; });
  if (known == known_.end()) {
    pending_[part.pid] = std::move(end);
  } else {
    const bool own_fault = known->second;
    known_.erase(known);
    // Whoever said so has counted it.
    if (own_fault && suspects(end) != budget::counts) forgiven_ = true;
  }
  tell(lock);
}

suspect_board::budget suspect_board::ended(uint32_t pid, bool own_fault) {
  std::unique_lock lock{mutex_};
  auto node = pending_.extract(pid);
  if (!node) {
    std::erase_if(known_, [&](const auto& x) { return x.first == pid; });
    if (own_fault) known_.emplace_back(pid, own_fault);
    if (known_.size() > known_max) known_.pop_front();
    return suspects_.hunting() ? budget::excused : budget::counts;
  }
  auto result = budget::counts;
  if (own_fault) result = suspects(node.mapped());
  tell(lock);
  return result;
}

suspect_board::budget suspect_board::ended_here() {
  std::unique_lock lock{mutex_};
  pending_end end;
  for (const auto& [sequence, x] : places_) end.epoch = std::max(end.epoch, x.epoch);
  end.flights = flights_of(end.epoch, nullptr);
  const auto result = suspects(end);
  tell(lock);
  return result;
}

bool suspect_board::take_forgiveness() {
  const std::lock_guard lock{mutex_};
  return std::exchange(forgiven_, false);
}

suspect_board::verdict suspect_board::of(request_id request) const {
  const std::lock_guard lock{mutex_};
  if (poisonous_.contains(request)) return verdict::poisonous;
  // Its second end may be the one whose cause is about to be told.
  for (const auto& [pid, end] : pending_)
    if (suspects_.ends_of(request) + 1 >= scheduler::suspects::ends_to_suspect
        && std::any_of(end.flights.begin(), end.flights.end(),
                       [&](const in_flight& x) { return x.request == request; }))
      return verdict::wait;
  switch (suspects_.leave_of(request)) {
  case scheduler::suspects::leave::with_others:
    return verdict::free;
  case scheduler::suspects::leave::in_test:
    return verdict::apart;
  case scheduler::suspects::leave::wait:
    break;
  }
  return verdict::wait;
}

bool suspect_board::hunting() const {
  const std::lock_guard lock{mutex_};
  return suspects_.hunting();
}

bool suspect_board::others_wait() const {
  const std::lock_guard lock{mutex_};
  return suspects_.others_wait();
}

} // namespace lamella::actors
