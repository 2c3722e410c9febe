/// The launch context of operators on one CUDA stream.
#pragma once

#include "base/arena.hpp"
#include "gpu/cuda/driver/half_copies.hpp"
#include "gpu/cuda/driver/memory.hpp"
#include "gpu/cuda/driver/trace.hpp"
#include "gpu/cuda/numbers/split_tickets.hpp"
#include "gpu/cuda/stream/channel_port.hpp"
#include "gpu/cuda/stream/open_kernel.hpp"
#include "gpu/ring/collective.hpp"
#include "gpu/ring/doorbell.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lamella::gpu::cuda {

/// The arguments of a work exceed the room.
class no_room : public std::length_error {
public:
  no_room(size_t wanted, size_t reserved)
      : std::length_error{"a work has " + std::to_string(wanted)
                          + " bytes of arguments or results and more, and "
                          + std::to_string(reserved) + " were reserved"},
        wanted_{wanted} {}
  size_t wanted() const { return wanted_; } ///< bytes, as far as known for the work

private:
  size_t wanted_;
};

/// Staging of the arguments of one work. Filled by the driver thread while it enqueues the work on
/// the stream; reusable when the work has ended. Never grows meanwhile: pinning memory may wait for
/// kernels that wait for this stream.
class staging {
public:
  /// Room for this many bytes on their way to the device, and back.
  static constexpr size_t bytes_least = size_t{2} << 20;

  /// Has room for bytes_least. May wait for the device.
  explicit staging(cudaStream_t stream);

  /// Resizes the room for arguments. Call while no work uses this; may wait for the device.
  void reserve(size_t upload_bytes);
  size_t reserved() const { return uploads_.size; }

  /// Copies host memory into the block once and returns its device address. Like copy() and
  /// results(), throws no_room when the block is full.
  const std::byte* upload(const void* from, size_t bytes);

  /// Copies host memory to `to` in device memory; `from` may change at once.
  void copy(const void* from, size_t bytes, std::byte* to);

  /// What operators keep from step to step of a work, by any address of theirs.
  std::shared_ptr<void>& kept(const void* key) { return kept_[key]; }

  /// Host memory the device can write and the driver can read when the work has ended.
  std::byte* results(size_t bytes);

  /// In mapped host memory: raised by the last kernel of the work.
  uint32_t* ended_word() { return reinterpret_cast<uint32_t*>(ended_.get()); }
  void reset();

private:
  struct block {
    std::shared_ptr<std::byte> host, device;
    size_t size = 0, used = 0;
  };
  /// Position of the next `bytes` of the block.
  static size_t take(block& from, size_t bytes);
  void send(size_t through, const void* from, size_t bytes, std::byte* to);

  cudaStream_t stream_;
  block uploads_, results_;
  std::map<std::pair<const void*, size_t>, const std::byte*> known_; ///< of this work
  std::map<const void*, std::shared_ptr<void>> kept_;
  std::shared_ptr<std::byte> ended_;
};

/// A word in mapped host memory that a kernel of the stream raises, and its sleeper.
struct watched_word {
  uint64_t* word;
  std::shared_ptr<void> memory; ///< keeps it mapped
  std::shared_ptr<listener> sleeper;
  uint64_t seen = 0;
};

/// The stream whose work the driver thread is currently enqueueing. Operators and channel ends find
/// it with current(); it is used by that thread alone.
class queue {
public:
  /// Device memory behind failed_word(): that word, and how many blocks have ended.
  static constexpr uint32_t words_of_waits = 2;

  explicit queue(int device);
  ~queue();
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;

  /// The queue of the step that runs on this thread; throws std::logic_error outside of a step.
  static queue& current();

  /// Makes this the current queue of the thread while it lives.
  class step {
  public:
    step(queue& q, staging& arguments);
    ~step();
    step(const step&) = delete;
    step& operator=(const step&) = delete;

  private:
    queue* before_;
  };

  /// The stream for the next kernels of this kind; earlier launches are already in it. Throws
  /// cuda_error.
  cudaStream_t stream(std::string_view what) {
    close();
    if (tracing.load(std::memory_order_relaxed)) trace_mark(stream_, what);
    return stream_;
  }

  /// The stream for operations that are not kernels and need no order.
  cudaStream_t handle() const { return stream_; }

  /// Leaves a kernel open for the next operator to join; the one before is launched.
  void open(std::unique_ptr<open_kernel> x) {
    close();
    open_ = std::move(x);
  }
  /// The open kernel, if it is one of these.
  template <class T> T* opened() { return dynamic_cast<T*>(open_.get()); }
  /// Takes it, to launch something in its place.
  template <class T> std::unique_ptr<T> take() {
    return std::unique_ptr<T>{static_cast<T*>(open_.release())};
  }
  bool has_open() const { return open_ != nullptr; }
  void close() {
    if (auto x = std::move(open_)) x->launch(*this);
  }

  /// Where the open kernel may post, with room for a frame or a release; null where it cannot.
  kernel_tail* tail();

  /// For a wait that the open kernel need not stand behind: unless it posts, it may as well come
  /// later.
  cudaStream_t stream_for_wait(std::string_view what) {
    if (const auto* x = open_ ? open_->tail() : nullptr; x != nullptr && x->posts()) close();
    if (tracing.load(std::memory_order_relaxed)) trace_mark(stream_, what);
    return stream_;
  }

  channel_port port() { return {&control(), failed_word(), timeout_ns}; }

  int device() const { return device_; }

  /// Device copy of a host array that stays unchanged until the work ends; copied once per work.
  template <class T> const T* upload(std::span<const T> x) {
    return x.empty() ? nullptr
                     : reinterpret_cast<const T*>(arguments_->upload(x.data(), x.size_bytes()));
  }

  /// Copies host memory to device memory in the order of the stream; `from` may change at once.
  void copy(std::span<const std::byte> from, std::byte* to) {
    arguments_->copy(from.data(), from.size(), to);
  }

  /// The T that operators keep under `key` until the work ends; made by `make` when first asked
  /// for.
  template <class T, class F> T& of_work(const void* key, F&& make) {
    auto& place = arguments_->kept(key);
    if (!place) place = std::make_shared<T>(make());
    return *static_cast<T*>(place.get());
  }

  /// Host memory for results of the work: written by kernels, read in at_end.
  template <class T> T* results(size_t count) {
    return reinterpret_cast<T*>(arguments_->results(count * sizeof(T)));
  }

  /// Called on the driver thread when the device has finished the work, before its mark.
  void at_end(std::function<void()> x) { at_end_.push_back(std::move(x)); }
  std::vector<std::function<void()>> take_at_end() { return std::exchange(at_end_, {}); }

  /// Mapped host memory: the abort word of all waits of this stream, and how the first one failed.
  channel_control& control() { return *reinterpret_cast<channel_control*>(control_.get()); }

  /// Device memory: not 0 after the first failed wait. Later kernels then neither wait nor send,
  /// until the stream has been drained and recovered.
  uint32_t* failed_word() { return reinterpret_cast<uint32_t*>(failed_.get()); }

  /// Of the products of this stream.
  split_tickets tickets() { return {failed_word() + words_of_waits, split_tickets_most}; }

  /// After failed waits, when the stream is empty: both words are 0 again.
  void recover();

  /// When the waits of the stream are ended early, this object is ended too, if it is alive: its
  /// kernels wait without checking the control words.
  void ends_with_waits(std::weak_ptr<collective> x);
  void end_collectives();

  /// From now on the driver wakes the sleeper when the word has changed.
  void watch(watched_word x);
  /// True if one has changed since the last call.
  bool tell_sleepers();
  void forget_sleepers() { watched_.clear(); }

  /// Nanoseconds a wait of the present work may take; set by the driver for each step.
  uint64_t timeout_ns = 0;

  /// Of the present work.
  half_copies& copies() {
    return of_work<half_copies>(this, [] { return half_copies{}; });
  }
  /// What the next product will read, as far as one can tell: what the last one read.
  dense_type matmuls_read = dense_type::f16;

  arena workspace; ///< device memory of the present work, kept between its steps
  arena scratch;   ///< device memory of one operator; the stream's order makes it safe to reuse

private:
  std::shared_ptr<std::byte> grow(size_t bytes) { return device_memory(bytes, stream_); }

  int device_;
  cudaStream_t stream_ = nullptr;
  std::shared_ptr<std::byte> control_;
  std::shared_ptr<std::byte> failed_; ///< these words, then the tickets
  std::unique_ptr<open_kernel> open_;
  staging* arguments_ = nullptr;
  std::vector<std::function<void()>> at_end_;
  std::map<uint64_t*, watched_word> watched_;
  std::vector<std::weak_ptr<collective>> collectives_;
};

} // namespace lamella::gpu::cuda
