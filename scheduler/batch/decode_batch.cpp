#include "scheduler/batch/decode_batch.hpp"

#include "scheduler/slot_pool.hpp"

#include <algorithm>

namespace lamella::scheduler {

void decode_batch::join(decode_join x, nanoseconds now) {
  joining_.push_back(std::move(x));
  gathering_.joined(now);
}

uint32_t decode_batch::seat(decode_join&& x) {
  const auto seat = table_.join(x.member, x.runs);
  row r;
  r.capacity = length_of(x.runs);
  r.joined_at = x.position;
  r.of = std::move(x);
  seat_of_[r.of.sequence] = seat;
  rows_.emplace(seat, std::move(r));
  return seat;
}

std::vector<uint32_t> decode_batch::seat_joined() {
  std::vector<uint32_t> result;
  for (; !joining_.empty(); joining_.pop_front())
    result.push_back(seat(std::move(joining_.front())));
  return result;
}

decode_batch::leave_answer decode_batch::leave(sequence_id sequence, bool yields) {
  const auto leaves = [&](row& x) {
    x.leaving = true;
    x.evicted = false;
    x.yields = yields;
    return leave_answer::leaves;
  };
  if (const auto found = seat_of_.find(sequence); found != seat_of_.end()) {
    auto& x = rows_.at(found->second);
    return x.leaving && yields ? leave_answer::ends_anyway : leaves(x);
  }
  const auto waiting = std::find_if(joining_.begin(), joining_.end(),
                                    [&](const auto& j) { return j.sequence == sequence; });
  if (waiting == joining_.end()) return leave_answer::unknown;
  auto& x = rows_.at(seat(std::move(*waiting))); // so that it leaves in the one way there is
  joining_.erase(waiting);
  return leaves(x);
}

std::vector<decode_batch::departure> decode_batch::depart() {
  std::vector<departure> gone;
  for (auto it = rows_.begin(); it != rows_.end();) {
    auto& x = it->second;
    if (!x.leaving || x.in_flight > 0 || x.growing || must_run_again(x)) {
      ++it;
      continue;
    }
    table_.leave(it->first);
    seat_of_.erase(x.of.sequence);
    gone.push_back({x.of.sequence, x.evicted, x.yields, x.joined_at, std::move(x.written)});
    it = rows_.erase(it);
  }
  return gone;
}

decode_batch::nanoseconds decode_batch::rest(nanoseconds now) {
  if (!gathering_.waits()) return pace_.rest(now);
  const bool ready = std::ranges::none_of(
      rows_, [](const auto& x) { return x.second.waits && !x.second.leaving; });
  return std::max(pace_.rest(now), gathering_.rest(now, ready));
}

decode_batch::step decode_batch::next(bool prompts_first) {
  step result;
  // Rows of a failed attempt are in the next one, which clears what is left of them.
  const auto stands = [&](const row& x) {
    return prompts_first && !failing_ && !x.leaving && x.stood_back < settings_.stand_backs;
  };
  for (auto& [seat, x] : rows_) {
    if ((x.leaving && !must_run_again(x)) || x.waits) continue;
    if (settings_.growth.asks(x.next(), x.capacity) && !x.growing && !x.leaving) {
      x.growing = true;
      result.growing.push_back(seat);
    }
    if (x.next() < x.capacity) (stands(x) ? result.standing : result.rows).push_back(seat);
  }
  return result;
}

void decode_batch::stood_back(const std::vector<uint32_t>& seats) {
  for (const auto seat : seats) ++rows_.at(seat).stood_back;
}

bool decode_batch::rows_are_known() const {
  if (!joining_.empty() || pace_.bounded()) return false;
  return std::none_of(rows_.begin(), rows_.end(), [](const auto& entry) {
    const auto& x = entry.second;
    return x.leaving || x.of.needs_history || x.of.generated + x.in_flight >= x.of.max_tokens
           || x.next() >= x.capacity;
  });
}

void decode_batch::granted(sequence_id sequence, const std::vector<slot_run>& runs) {
  const auto found = seat_of_.find(sequence);
  if (found == seat_of_.end()) return;
  auto& x = rows_.at(found->second);
  x.growing = false;
  x.capacity += length_of(runs);
  table_.extend(found->second, runs);
}

std::optional<uint32_t> decode_batch::refused(sequence_id sequence) {
  const auto found = seat_of_.find(sequence);
  if (found == seat_of_.end()) return std::nullopt;
  auto& starved = rows_.at(found->second);
  starved.growing = false;
  if (starved.leaving || starved.next() < starved.capacity) return std::nullopt;
  const auto in_table = [&](const auto& x) { return x.of.member == starved.of.member; };
  for (const auto& [seat, x] : rows_)
    if (in_table(x) && x.evicted) return std::nullopt; // its slots are on their way back
  const auto youngest = last_to_come(seat_of_, [&](const auto& entry) {
    const auto& x = rows_.at(entry.second);
    return in_table(x) && !x.leaving;
  });
  auto& x = rows_.at(youngest->second);
  x.leaving = x.evicted = true;
  return youngest->second;
}

decode_batch::commitment decode_batch::commit(uint32_t seat, model::token_id token, bool valid) {
  auto& x = rows_.at(seat);
  --x.in_flight;
  x.exposed = false;
  if (x.leaving || !valid) return {!x.leaving};
  ++x.of.position;
  x.written.push_back(x.of.last);
  x.of.last = token;
  commitment result{true, x.of.generated++};
  if (std::find(x.of.ends.begin(), x.of.ends.end(), token) != x.of.ends.end())
    result.reason = finish::stop;
  else if (x.of.generated >= x.of.max_tokens)
    result.reason = finish::length;
  x.leaving = result.reason != finish::none;
  return result;
}

void decode_batch::drop() {
  for (auto& [seat, x] : rows_) x.exposed |= std::exchange(x.in_flight, 0) > 0;
  failing_ = true;
}

void decode_batch::ran(nanoseconds now, nanoseconds took) {
  failing_ = false;
  pace_.ran(now, took);
}

std::vector<std::pair<sequence_id, uint32_t>> decode_batch::positions() const {
  std::vector<std::pair<sequence_id, uint32_t>> result;
  for (const auto& [seat, x] : rows_)
    if (!x.leaving) result.emplace_back(x.of.sequence, x.of.position);
  for (const auto& x : joining_) result.emplace_back(x.sequence, x.position);
  return result;
}

std::optional<uint32_t> decode_batch::seat_of(sequence_id sequence) const {
  const auto found = seat_of_.find(sequence);
  if (found == seat_of_.end()) return std::nullopt;
  return found->second;
}

} // namespace lamella::scheduler
