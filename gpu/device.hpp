/// The interface of a device: memory, streams of work, an operator table.
#pragma once

#include "gpu/kernels/operators.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace lamella::gpu {

using clock = std::chrono::steady_clock;

/// Result of a work.
enum class work_status : uint8_t {
  done,
  aborted,  ///< stream::abort, or the stream was destroyed
  deadline, ///< a wait inside it missed the deadline
  cut,      ///< a channel it waits for is closed (channel_ended)
  failed,   ///< an exception
  lost,     ///< the device itself is lost: no work will run on it any more
};

std::string_view to_string(work_status status);

/// Work on a stream, as a resumable list of steps. A stream never blocks a thread: a step that must
/// wait for another device returns `blocked` and is retried.
class work {
public:
  enum class progress : uint8_t { advanced, blocked, done };

  virtual ~work() = default;

  /// Runs the next step. `blocked`: nothing was done, the peer is not ready.
  virtual progress advance(kernel_context context) = 0;

  /// Time of the device spent so far; final when the mark fires. On the host waiting is not
  /// counted; on a device with queues it is the time from the first kernel to the last.
  clock::duration busy() const { return busy_; }
  void add_busy(clock::duration x) { busy_ += x; } ///< for the device's stream alone

  /// Of that, the transfer time: steps other than the main computation; 0 on a device with queues,
  /// which runs all of a work at once.
  clock::duration aside() const { return aside_; }
  /// Adds the duration of a step; for the device's stream only.
  void add_step(clock::duration x) {
    busy_ += x;
    if (step_aside_) aside_ += x;
  }

  /// On a device with queues, from the last kernel of the work before it in its stream to the mark
  /// in front of its first; nothing where there was none. Final when the mark fires.
  std::optional<clock::duration> gap() const { return gap_; }
  void set_gap(clock::duration x) { gap_ = x; } ///< for the device's stream alone

protected:
  /// Called in advance(): the kind of this step.
  void step_aside(bool x) { step_aside_ = x; }

private:
  clock::duration busy_{0}, aside_{0};
  bool step_aside_ = false;
  std::optional<clock::duration> gap_;
};

/// Work in order. Thread-safe.
class stream {
public:
  /// Called once per work on a driver thread; may only post a message.
  using mark = std::function<void(work_status)>;

  virtual ~stream() = default;

  /// Enqueues and returns. The mark fires when the work has ended, with any result.
  virtual void launch(std::shared_ptr<work> x, clock::time_point deadline, mark on_end) = 0;

  /// Ends all work launched so far with `aborted`, at the next step.
  virtual void abort() = 0;
};

/// Memory of a device, zeroed, 64-byte aligned. `trim` returns pages to the system and zeroes.
class memory {
public:
  virtual ~memory() = default;
  virtual std::byte* data() = 0;
  virtual size_t size() const = 0;
  virtual void trim() = 0;
};

/// A monotonic counter (timeline semaphore): streams of one device raise it and wait for it.
class counter {
public:
  virtual ~counter() = default;

  /// A step of a stream: at least `value`, once everything before it in the stream is done.
  virtual void raise(uint64_t value) = 0;

  /// A step of a stream: whether it is at least `value`. A device with queues returns true and
  /// enqueues the wait on the stream.
  virtual bool reached(uint64_t value) = 0;

  /// From outside of streams, for a work that will not raise it any more: raises it to at least
  /// `value`.
  virtual void skip(uint64_t value) = 0;
};

/// Memory of a device that an RDMA adapter reads and writes, and host memory that the device maps.
/// Both zeroed.
struct adapter_memory {
  std::shared_ptr<std::byte> data; ///< of the device, on a page of its own
  int dma_buf = -1;                ///< descriptor by which adapters register `data`; -1: by address
  std::string how;                 ///< for logs: whose memory, and why there is no descriptor
  std::shared_ptr<std::byte> host;
};

struct ring_place;
struct ring_identity;
class channel_sender;
class channel_receiver;
class collective;
class doorbell;

/// Upper bounds of one work item, as known at start.
struct work_sizes {
  uint64_t attended = 0;   ///< slots attended to by all rows of a work
  uint32_t rows = 0;       ///< that attend
  uint32_t draws = 0;      ///< rows that are sampled
  uint32_t vocabulary = 0; ///< of those
};

/// Properties that determine the bits of a device's results besides weights and types
/// (decision 29).
struct device_numerics {
  std::string kernels; ///< the set, and of what class of devices
  std::string sizes;   ///< of the pieces that sums are cut into
  friend bool operator==(const device_numerics&, const device_numerics&) = default;
};

class device {
public:
  virtual ~device() = default;
  virtual std::string name() const = 0;
  virtual const operators& ops() const = 0;
  virtual device_numerics numerics() const { return {std::string{ops().name}, "chunk=256"}; }
  /// Whether the device failed for good in this process.
  virtual bool lost() const { return false; }
  virtual team& workers() = 0; ///< for packing weights, before anything is launched
  virtual std::unique_ptr<stream> make_stream(std::string name) = 0;
  /// Throws std::bad_alloc.
  virtual std::unique_ptr<memory> allocate(size_t bytes) = 0;

  /// Call before its streams are created. Where resources cannot grow while streams run, a work
  /// that needs more fails, and the next one in its stream has enough.
  virtual void prepare_works(const work_sizes& /*most*/) {}

  /// Before any of its streams waits for another: from now on up to so many can be made at once
  /// without waiting for the device. False: it cannot have so many at once.
  virtual bool prepare_streams(size_t /*count*/) { return true; }

  /// Warnings for the operator about the use of the device so far.
  virtual std::vector<std::string> remarks() const { return {}; }

  /// Bytes still available to allocate(); for the host, the memory of the machine.
  virtual uint64_t free_bytes() const = 0;

  /// Copies host memory to memory of this device, and back; waits until it is done.
  virtual void write(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void read(std::span<std::byte> to, const std::byte* from) = 0;

  /// Whether its streams are run by threads of the host, on the host's memory.
  virtual bool on_host() const = 0;

  /// Zeroed memory for a ring (gpu/ring/ring.hpp) between a stream of this device and one of
  /// `peer`.
  virtual std::shared_ptr<std::byte> ring_memory(size_t bytes, const device& peer) = 0;

  /// The ends of such a ring as streams of this device use them.
  virtual std::shared_ptr<channel_sender> make_sender(ring_place place, ring_identity self) = 0;
  virtual std::shared_ptr<channel_receiver> make_receiver(ring_place place) = 0;

  /// For rings whose frames an adapter carries (net/rdma/direct_link.hpp). May wait for the device.
  /// Throws std::runtime_error with the reason where there is no room, or no adapter may write into
  /// memory of this device that its streams poll.
  virtual adapter_memory make_adapter_memory(size_t /*bytes*/, size_t /*host_bytes*/) {
    throw std::runtime_error{name() + " has no memory that adapters write into"};
  }

  /// The register of an adapter, by which its bell is rung, as kernels of this device write it.
  /// Stays mapped as long as the process. May wait for the device. Throws std::runtime_error with
  /// the reason where kernels cannot write there.
  virtual uint64_t* map_register(std::span<uint64_t> /*bell*/) {
    throw std::runtime_error{"kernels of " + name() + " cannot ring an adapter's bell"};
  }

  /// All-reduce over the ranks on these devices, this one included, by their own means: one end per
  /// rank. Empty where not available: then all-reduce goes through rings, and `why` has the reason.
  virtual std::vector<std::shared_ptr<collective>>
  make_sums(std::span<const std::shared_ptr<device>> /*ranks*/, std::string& why) {
    why = name() + " has no means of its own";
    return {};
  }

  /// From 0; values stay below 2^48.
  virtual std::shared_ptr<counter> make_counter() = 0;

  /// The doorbell that peers ring for a stream of this device; null where no thread sleeps on it.
  virtual std::shared_ptr<doorbell> bell() = 0;
};

} // namespace lamella::gpu
