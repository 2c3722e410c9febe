#include "gpu/cuda/queue.hpp"

#include "gpu/cuda/words.cuh"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>

namespace lamella::gpu::cuda {

namespace {

constexpr size_t alignment = 256;
constexpr size_t first_block = size_t{2} << 20;

thread_local queue* current_queue = nullptr;

size_t padded(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

} // namespace

staging::staging(cudaStream_t stream, const std::function<void()>& before_growth)
    : stream_{stream}, before_growth_{before_growth}, ended_{pinned_memory(sizeof(uint32_t))} {
  // Pinning may wait for the device: done now, while nothing of this stream runs.
  room(uploads_, first_block, true);
  room(results_, first_block, false);
  reset();
}

staging::block& staging::room(std::vector<block>& blocks, size_t bytes, bool on_device) {
  for (auto& b : blocks)
    if (b.size - b.used >= bytes) return b;
  before_growth_();
  block fresh;
  fresh.size = std::max(bytes, first_block);
  fresh.host = pinned_memory(fresh.size);
  if (on_device) fresh.device = pool_memory(fresh.size, stream_);
  blocks.push_back(std::move(fresh));
  return blocks.back();
}

const std::byte* staging::upload(const void* from, size_t bytes) {
  auto& place = known_[{from, bytes}];
  if (place != nullptr) return place;
  auto& b = room(uploads_, padded(bytes), true);
  auto* to = b.device.get() + b.used;
  send(b, from, bytes, to);
  return place = to;
}

void staging::copy(const void* from, size_t bytes, std::byte* to) {
  send(room(uploads_, padded(bytes), true), from, bytes, to);
}

void staging::send(block& through, const void* from, size_t bytes, std::byte* to) {
  auto* pinned = through.host.get() + through.used;
  through.used += padded(bytes);
  std::memcpy(pinned, from, bytes);
  check(launch_fetch(pinned, bytes, to, stream_), "copy of arguments");
}

std::byte* staging::results(size_t bytes) {
  auto& b = room(results_, padded(bytes), false);
  auto* place = b.host.get() + b.used;
  b.used += padded(bytes);
  return place;
}

void staging::reset() {
  for (auto* blocks : {&uploads_, &results_})
    for (auto& b : *blocks) b.used = 0;
  known_.clear();
  kept_.clear();
  *ended_word() = 0;
}

queue::queue(int device)
    : device_{device}, control_{pinned_memory(sizeof(channel_control))}, failed_{device_memory(
                                                                             2
                                                                             * sizeof(uint32_t))} {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  workspace = arena{[this](size_t bytes) { return grow(bytes); }};
  scratch = arena{[this](size_t bytes) { return grow(bytes); }};
  check(cudaMemsetAsync(failed_.get(), 0, 2 * sizeof(uint32_t), stream_), "cudaMemset");
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

void queue::watch(watched_word x) {
  auto* word = x.word;
  watched_.emplace(word, std::move(x));
}

void queue::tell_sleepers() {
  for (auto& [word, x] : watched_) {
    const auto now = std::atomic_ref{*word}.load(std::memory_order_acquire);
    if (now != std::exchange(x.seen, now)) x.sleeper->ring();
  }
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
