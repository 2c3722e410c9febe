/// The thread that drives one CUDA device: works in, marks out.
#pragma once

#include "gpu/cuda/queue.hpp"
#include "gpu/cuda/replay.hpp"
#include "gpu/device.hpp"

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
  /// A work, and what to do when it has ended.
  struct job {
    std::shared_ptr<work> what;
    clock::time_point deadline;
    stream::mark on_end;
  };

  /// What the driver keeps of a stream.
  struct line;

  /// `device` is current on this thread. `replays`: works that are like those before them are
  /// launched as graphs.
  explicit driver(int device, bool replays = replay_wanted());
  /// Ends all work with `aborted`; waits for the device.
  ~driver();
  driver(const driver&) = delete;
  driver& operator=(const driver&) = delete;

  std::shared_ptr<line> open();
  /// All its work ends with `aborted`; returns when the device has left it.
  void close(const std::shared_ptr<line>& x);
  void launch(const std::shared_ptr<line>& x, job j);
  void abort(const std::shared_ptr<line>& x);

  /// For what the host does with weights before anything is launched.
  team& workers() { return workers_; }

private:
  void run();
  bool turn(line& x);
  bool obey(line& x);
  bool collect(line& x);
  bool put(line& x);
  bool start(line& x);
  void complete(line& x, work_status status);
  void end_front(line& x, work_status status);
  bool device_failed(line& x);
  void watch();

  int device_;
  bool replays_;
  team workers_;
  std::mutex mutex_;
  std::condition_variable wake_, left_;
  std::vector<std::shared_ptr<line>> lines_; ///< guarded by mutex_, as are their orders
  std::vector<std::shared_ptr<line>> spare_; ///< guarded by mutex_
  bool stopping_ = false;
  bool lost_ = false; ///< of the driver thread: a sticky error, nothing runs here any more
  uint32_t idle_turns_ = 0;
  std::thread thread_;
};

} // namespace lamella::gpu::cuda
