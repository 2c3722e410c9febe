#include "gpu/cuda/driver/queue.hpp"

#include "gpu/cuda/stream/words.cuh"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>

namespace lamella::gpu::cuda {

namespace {

constexpr size_t alignment = 256;

thread_local queue* current_queue = nullptr;

size_t padded(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

} // namespace

staging::staging(cudaStream_t stream) : stream_{stream}, ended_{pinned_memory(sizeof(uint32_t))} {
  reserve(bytes_least);
  results_.size = bytes_least;
  results_.host = pinned_memory(bytes_least);
  reset();
}

void staging::reserve(size_t upload_bytes) {
  if (upload_bytes <= uploads_.size) return;
  uploads_ = {};
  uploads_.host = pinned_memory(upload_bytes);
  uploads_.device = device_memory(upload_bytes, stream_);
  uploads_.size = upload_bytes;
}

size_t staging::take(block& from, size_t bytes) {
  if (from.size - from.used < padded(bytes)) throw no_room{from.used + padded(bytes), from.size};
  return std::exchange(from.used, from.used + padded(bytes));
}

const std::byte* staging::upload(const void* from, size_t bytes) {
  auto& place = known_[{from, bytes}];
  if (place != nullptr) return place;
  const auto at = take(uploads_, bytes);
  auto* to = uploads_.device.get() + at;
  send(at, from, bytes, to);
  return place = to;
}

void staging::copy(const void* from, size_t bytes, std::byte* to) {
  send(take(uploads_, bytes), from, bytes, to);
}

void staging::send(size_t through, const void* from, size_t bytes, std::byte* to) {
  auto* pinned = uploads_.host.get() + through;
  std::memcpy(pinned, from, bytes);
  check(launch_fetch(pinned, bytes, to, stream_), "copy of arguments");
}

std::byte* staging::results(size_t bytes) { return results_.host.get() + take(results_, bytes); }

void staging::reset() {
  uploads_.used = results_.used = 0;
  known_.clear();
  kept_.clear();
  *ended_word() = 0;
}

namespace {
constexpr size_t words_bytes = (queue::words_of_waits + split_tickets_most) * sizeof(uint32_t);
}

queue::queue(int device)
    : device_{device}, control_{pinned_memory(sizeof(channel_control))}, failed_{device_memory(
                                                                             words_bytes)} {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  workspace = arena{[this](size_t bytes) { return grow(bytes); }};
  scratch = arena{[this](size_t bytes) { return grow(bytes); }};
  check(cudaMemsetAsync(failed_.get(), 0, words_bytes, stream_), "cudaMemset");
  control() = {};
}

void queue::recover() {
  control() = {};
  check(cudaMemsetAsync(failed_.get(), 0, sizeof(uint32_t), stream_), "cudaMemset");
}

kernel_tail* queue::tail() {
  auto* x = open_ ? open_->tail() : nullptr;
  if (x != nullptr) {
    x->port = port();
    x->arrived = failed_word() + 1;
  }
  return x;
}

void queue::ends_with_waits(std::weak_ptr<collective> x) {
  std::erase_if(collectives_, [](const auto& known) { return known.expired(); });
  const auto same = [&](const auto& known) {
    return !known.owner_before(x) && !x.owner_before(known);
  };
  if (std::none_of(collectives_.begin(), collectives_.end(), same))
    collectives_.push_back(std::move(x));
}

void queue::end_collectives() {
  for (const auto& x : std::exchange(collectives_, {}))
    if (const auto alive = x.lock()) alive->end(channel_state::aborted);
}

void queue::watch(watched_word x) {
  auto* word = x.word;
  watched_.emplace(word, std::move(x));
}

bool queue::tell_sleepers() {
  bool moved = false;
  for (auto& [word, x] : watched_) {
    const auto now = std::atomic_ref{*word}.load(std::memory_order_acquire);
    if (now == std::exchange(x.seen, now)) continue;
    x.sleeper->ring();
    moved = true;
  }
  return moved;
}

queue::~queue() { cudaStreamDestroy(stream_); }

queue& queue::current() {
  if (current_queue == nullptr)
    throw std::logic_error("a CUDA operator was called outside of a step of a CUDA stream");
  return *current_queue;
}

queue::step::step(queue& q, staging& arguments) : before_{std::exchange(current_queue, &q)} {
  q.arguments_ = &arguments;
}

queue::step::~step() { current_queue = before_; }

} // namespace lamella::gpu::cuda
