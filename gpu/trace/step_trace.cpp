#include "gpu/trace/step_trace.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace lamella::gpu {

std::string_view to_string(step_kind kind) {
  constexpr std::array<std::string_view, 6> names{"compute", "send",  "wait",
                                                  "sample",  "other", "idle"};
  return names[static_cast<size_t>(kind)];
}

step_lane::step_lane(uint64_t number, std::string device, std::string stream)
    : number_{number}, device_{std::move(device)}, stream_{std::move(stream)} {}

void step_lane::clear(size_t room, trace_clock::time_point until) {
  std::lock_guard lock{mutex_};
  spans_ = {};
  room_ = room;
  oldest_ = 0;
  dropped_ = 0;
  until_ = until;
  open_.reset();
  waiting_since_.reset();
  idle_since_.reset();
}

void step_lane::push(step_span span) {
  if (span.end > until_) {
    traces().stop();
    return;
  }
  if (spans_.size() < room_) {
    spans_.push_back(span);
  } else if (room_ > 0) {
    spans_[oldest_] = span;
    oldest_ = (oldest_ + 1) % room_;
    ++dropped_;
  }
}

void step_lane::close_open() {
  if (auto span = std::exchange(open_, std::nullopt)) push(*span);
}

/// Nothing was launched before this.
void step_lane::begin_step(trace_clock::time_point began) {
  if (auto since = std::exchange(idle_since_, std::nullopt); since && *since < began)
    push({{"idle", "idle", step_kind::idle}, *since, began, {}});
}

void step_lane::add(const step_label& label, trace_clock::time_point began,
                    trace_clock::time_point ended, bool blocked) {
  std::lock_guard lock{mutex_};
  begin_step(began);
  const bool is_part = label.kind == step_kind::send || label.kind == step_kind::sample;
  if (open_ && !is_part && open_->label != label) close_open();
  if (blocked) {
    if (!waiting_since_) waiting_since_ = began;
    return;
  }
  const auto since = std::exchange(waiting_since_, std::nullopt);
  if (label.kind == step_kind::wait) {
    push({label, since.value_or(began), ended, ended - began});
    return;
  }
  if (since) {
    auto wait = label;
    wait.name = label.waits;
    wait.kind = step_kind::wait;
    push({wait, *since, began, {}});
  }
  if (is_part) {
    push({label, began, ended, ended - began});
    if (open_) open_->end = ended;
  } else if (open_) {
    open_->end = ended;
  } else {
    open_ = step_span{label, began, ended, {}};
  }
  if (open_) open_->busy += ended - began;
}

void step_lane::add_whole(const step_label& label, trace_clock::time_point began,
                          trace_clock::time_point ended) {
  std::lock_guard lock{mutex_};
  begin_step(began);
  push({label, began, ended, ended - began});
  idle_since_ = ended;
}

void step_lane::end_work(trace_clock::time_point now) {
  std::lock_guard lock{mutex_};
  close_open();
  if (auto since = std::exchange(waiting_since_, std::nullopt))
    push({{"wait", "wait", step_kind::wait}, *since, now, {}});
  idle_since_ = now;
}

size_t step_traces::room_per_lane() const {
  return std::clamp(spans_max / std::max<size_t>(lanes_.size(), 1), lane_spans_min, lane_spans_max);
}

void step_traces::start(uint64_t id, trace_clock::time_point until) {
  std::lock_guard lock{mutex_};
  if (id == id_) return;
  id_ = id;
  until_ = until;
  std::erase_if(lanes_, [](const auto& x) { return x.use_count() == 1; }); // of streams that ended
  for (const auto& x : lanes_) x->clear(room_per_lane(), until);
  on_.store(true, std::memory_order_relaxed);
}

std::vector<lane_record> step_traces::read(uint64_t id, const std::vector<std::string>& devices) {
  std::lock_guard lock{mutex_};
  std::vector<lane_record> result;
  if (id != id_) return result;
  if (trace_clock::now() >= until_) stop();
  for (const auto& x : lanes_) {
    if (std::ranges::find(devices, x->device()) == devices.end()) continue;
    std::lock_guard lane_lock{x->mutex_};
    if (x->spans_.empty()) continue;
    lane_record one{x->number_, x->device_, x->stream_, x->dropped_, {}};
    one.spans.reserve(x->spans_.size());
    const auto oldest = x->spans_.begin() + static_cast<ptrdiff_t>(x->oldest_);
    one.spans.insert(one.spans.end(), oldest, x->spans_.end());
    one.spans.insert(one.spans.end(), x->spans_.begin(), oldest);
    result.push_back(std::move(one));
  }
  return result;
}

void step_traces::forget(uint64_t id, const std::vector<std::string>& devices) {
  std::lock_guard lock{mutex_};
  if (id != id_) return;
  for (const auto& x : lanes_)
    if (std::ranges::find(devices, x->device()) != devices.end()) x->clear(0, {});
}

std::shared_ptr<step_lane> step_traces::make_lane(std::string device, std::string stream) {
  std::lock_guard lock{mutex_};
  std::erase_if(lanes_, [](const auto& x) {
    std::lock_guard lane_lock{x->mutex_};
    return x.use_count() == 1 && x->spans_.empty();
  });
  auto lane = std::make_shared<step_lane>(++numbers_, std::move(device), std::move(stream));
  lanes_.push_back(lane);
  if (on()) lane->clear(room_per_lane(), until_);
  return lane;
}

step_traces& traces() {
  static step_traces all;
  return all;
}

} // namespace lamella::gpu
