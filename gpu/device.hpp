/// A device as the rest of the system sees it: memory, streams of work, an operator table.
#pragma once

#include "gpu/kernels/operators.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace lamella::gpu {

using clock = std::chrono::steady_clock;

/// How a piece of work ended.
enum class work_status : uint8_t {
  done,
  aborted,  ///< stream::abort, or the stream was destroyed
  deadline, ///< a wait inside it outlived the deadline
  failed,   ///< an exception; the device is to be treated as lost
};

std::string_view to_string(work_status status);

/// Work on a stream, as a resumable list of steps. A stream never blocks a thread: a step that must
/// wait for another device says so and is tried again.
class work {
public:
  enum class progress : uint8_t { advanced, blocked, done };

  virtual ~work() = default;

  /// Runs the next step. `blocked`: nothing was done, the peer has not spoken yet.
  virtual progress advance(kernel_context context) = 0;
};

/// Work in order. Thread-safe.
class stream {
public:
  /// Called once per work on a driver thread; may only post a message.
  using mark = std::function<void(work_status)>;

  virtual ~stream() = default;

  /// Enqueues and returns. The mark fires when the work has ended, whatever way.
  virtual void launch(std::shared_ptr<work> x, clock::time_point deadline, mark on_end) = 0;

  /// Ends all work launched so far with `aborted`, at the next step.
  virtual void abort() = 0;
};

/// Memory of a device, zeroed, 64-byte aligned. `trim` gives pages back to the system and zeroes.
class memory {
public:
  virtual ~memory() = default;
  virtual std::byte* data() = 0;
  virtual size_t size() const = 0;
  virtual void trim() = 0;
};

class device {
public:
  virtual ~device() = default;
  virtual std::string name() const = 0;
  virtual const operators& ops() const = 0;
  virtual team& workers() = 0; ///< for packing weights, before anything is launched
  virtual std::unique_ptr<stream> make_stream(std::string name) = 0;
  /// Throws std::bad_alloc.
  virtual std::unique_ptr<memory> allocate(size_t bytes) = 0;
};

} // namespace lamella::gpu
