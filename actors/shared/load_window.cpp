#include "actors/shared/load_window.hpp"

#include "actors/protocol/tokens.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lamella::actors {

namespace {

constexpr double shortest_s = 1e-4, growth = 1.05;

int64_t second_of(load_window::time_point x) {
  return std::chrono::floor<std::chrono::seconds>(x.time_since_epoch()).count();
}

} // namespace

size_t load_window::bucket_of(seconds x) {
  if (!(x.count() > shortest_s)) return 0;
  const auto steps = std::ceil(std::log(x.count() / shortest_s) / std::log(growth));
  return static_cast<size_t>(std::min(steps, double{buckets - 1}));
}

/// The upper end of the bucket in which the 99th percentile is.
load_window::seconds load_window::p99_of(const durations& counts) {
  const auto all = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  if (all == 0) return seconds{0};
  const auto rank = (99 * all + 99) / 100;
  uint64_t below = 0;
  size_t i = 0;
  while ((below += counts[i]) < rank) ++i;
  return seconds{shortest_s * std::pow(growth, static_cast<double>(i))};
}

load_window::slot* load_window::at(time_point now) {
  const auto second = second_of(now);
  if (second < 0) return nullptr;
  auto& found = slots_[static_cast<size_t>(second) % slots_.size()];
  if (second < found.second) return nullptr;
  if (second > found.second) {
    found = {};
    found.second = second;
  }
  since_ = std::min(second, since_.value_or(second));
  return &found;
}

void load_window::first_token(time_point now, seconds after) {
  const std::lock_guard lock{mutex_};
  if (auto* x = at(now)) ++x->first[bucket_of(after)];
}

void load_window::token_gap(time_point now, seconds gap) {
  const std::lock_guard lock{mutex_};
  if (auto* x = at(now)) ++x->gaps[bucket_of(gap)];
}

void load_window::tokens(time_point now, uint64_t count) {
  const std::lock_guard lock{mutex_};
  if (auto* x = at(now)) x->tokens += count;
}

load_window::reading load_window::read(time_point now, std::chrono::seconds length) const {
  const auto until = second_of(now);
  const auto whole = std::clamp<int64_t>(length.count(), 1, longest.count());
  durations first{}, gaps{};
  uint64_t tokens = 0;
  const std::lock_guard lock{mutex_};
  if (!since_ || until <= *since_) return {};
  for (const auto& x : slots_) {
    if (x.second < until - whole || x.second >= until) continue;
    for (size_t i = 0; i < buckets; ++i) {
      first[i] += x.first[i];
      gaps[i] += x.gaps[i];
    }
    tokens += x.tokens;
  }
  const auto covered = std::min(whole, until - *since_);
  return {p99_of(first), p99_of(gaps), static_cast<double>(tokens) / static_cast<double>(covered)};
}

} // namespace lamella::actors
