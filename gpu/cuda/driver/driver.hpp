/// The thread that drives one CUDA device: works in, marks out.
#pragma once

#include "gpu/cuda/driver/queue.hpp"
#include "gpu/device.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lamella::gpu::cuda {

/// Puts the works of each line (a stream of the port) into its CUDA stream in order, at most
/// `ahead` of them before the first has ended, and watches the words their last kernels raise.
class driver {
public:
  /// A work and its completion callback.
  struct job {
    std::shared_ptr<work> what;
    clock::time_point deadline;
    stream::mark on_end;
  };

  /// The driver's state of a stream.
  struct line;

  /// Maximum lines of one device. A device has 32 queues (CUDA_DEVICE_MAX_CONNECTIONS); further
  /// streams share them, and a waiting kernel could block the one it waits for. Some queues are
  /// left for loading. config/rules.cpp rejects settings that need more.
  static constexpr size_t lines_max = 28;

  /// `device` is current on this thread.
  explicit driver(int device);
  /// Ends all work with `aborted`; waits for the device.
  ~driver();
  driver(const driver&) = delete;
  driver& operator=(const driver&) = delete;

  /// Throws std::runtime_error beyond lines_max. Waits for the device where no spare line with the
  /// requested room is left.
  std::shared_ptr<line> open();
  /// Lines opened from now on have room for this many bytes of arguments per work, at least
  /// staging::bytes_least. A work with more fails, and its line, and later ones, get twice the
  /// missing room. Call while nothing runs: it pins memory.
  void reserve(size_t argument_bytes);
  /// Prepares this many lines, or lines_max, which can then be opened without waiting. False: that
  /// is less. Call while nothing runs.
  bool prepare(size_t lines);
  /// Aborts all its work; returns when the device has left it.
  void close(const std::shared_ptr<line>& x);
  void launch(const std::shared_ptr<line>& x, job j);
  void abort(const std::shared_ptr<line>& x);

  /// A sticky error occurred: all work ends with `lost`. Thread-safe.
  bool lost() const { return lost_.load(std::memory_order_relaxed); }

  /// For what the host does with weights before anything is launched.
  team& workers() { return workers_; }

private:
  void run();
  bool turn(line& x);
  bool obey(line& x);
  bool collect(line& x);
  bool expire(line& x);
  void recover(line& x);
  static void end_waits(line& x);
  bool put(line& x);
  bool start(line& x);
  void complete(line& x, work_status status);
  void close_last(line& x);
  void lack_room(size_t wanted);
  void end_front(line& x, work_status status);
  bool device_failed(line& x);
  void watch();

  int device_;
  team workers_;
  std::mutex mutex_;
  std::condition_variable wake_, left_;
  std::vector<std::shared_ptr<line>> lines_; ///< guarded by mutex_, as are their orders
  std::vector<std::shared_ptr<line>> spare_; ///< guarded by mutex_
  std::atomic<size_t> argument_bytes_{staging::bytes_least}; ///< written under mutex_
  bool stopping_ = false;
  std::atomic<bool> lost_{false}; ///< written by the driver thread
  uint32_t idle_turns_ = 0;
  std::thread thread_;
};

} // namespace lamella::gpu::cuda
