/// What the streams of this process did, as spans of time: recorded for some seconds when somebody
/// asks, and free of cost otherwise.
#pragma once

#include "gpu/trace/traced_work.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lamella::gpu {

using trace_clock = std::chrono::steady_clock;

/// A span of a lane. Spans of one lane lie within each other or apart.
struct step_span {
  step_label label;
  trace_clock::time_point begin{}, end{};
  trace_clock::duration busy{0}; ///< of it, the time in which its steps ran
};

/// The recorder of one stream. Consecutive steps of one slice become one span; sends and sampling
/// lie within it. Keeps the newest spans. Thread-safe.
class step_lane {
public:
  step_lane(uint64_t number, std::string device, std::string stream);

  /// A step that was taken, or was blocked, from `began` to `ended`.
  void add(const step_label& label, trace_clock::time_point began, trace_clock::time_point ended,
           bool blocked);
  /// A whole work that has ended.
  void add_whole(const step_label& label, trace_clock::time_point began,
                 trace_clock::time_point ended);
  /// The work of the last steps has ended, with any result.
  void end_work(trace_clock::time_point now);

  uint64_t number() const { return number_; } ///< unique in this process
  const std::string& device() const { return device_; }
  const std::string& stream() const { return stream_; }

private:
  friend class step_traces;
  void clear(size_t room, trace_clock::time_point until);
  void close_open();
  void push(step_span span);
  void begin_step(trace_clock::time_point began);

  const uint64_t number_;
  const std::string device_, stream_;
  std::mutex mutex_; ///< of the members below
  std::vector<step_span> spans_;
  size_t room_ = 0, oldest_ = 0; ///< `spans_` is a ring once it is full
  uint64_t dropped_ = 0;
  trace_clock::time_point until_{};
  std::optional<step_span> open_; ///< the slice that goes on
  std::optional<trace_clock::time_point> waiting_since_, idle_since_;
};

/// A copy of what a lane recorded.
struct lane_record {
  uint64_t number = 0;
  std::string device, stream;
  uint64_t dropped = 0; ///< spans that were overwritten
  std::vector<step_span> spans;
};

/// All lanes of this process. Thread-safe.
class step_traces {
public:
  /// Spans of all lanes together, and of one.
  static constexpr size_t spans_max = size_t{1} << 18, lane_spans_max = size_t{1} << 16;
  static constexpr size_t lane_spans_min = 1024;

  /// Whether steps are recorded now. One relaxed load.
  bool on() const { return on_.load(std::memory_order_relaxed); }

  /// Forgets what was recorded and records until then. Of a recording that goes on already (the
  /// same id) nothing changes.
  void start(uint64_t id, trace_clock::time_point until);

  /// What the lanes of these devices recorded; a recording of another id is empty. Ends the
  /// recording when its time is over.
  std::vector<lane_record> read(uint64_t id, const std::vector<std::string>& devices);

  /// Frees the spans of these devices.
  void forget(uint64_t id, const std::vector<std::string>& devices);

  /// A lane for a stream that is made.
  std::shared_ptr<step_lane> make_lane(std::string device, std::string stream);

  /// For lanes: nothing after that time is recorded.
  void stop() { on_.store(false, std::memory_order_relaxed); }

private:
  size_t room_per_lane() const;

  std::atomic<bool> on_{false};
  std::mutex mutex_; ///< of the members below
  std::vector<std::shared_ptr<step_lane>> lanes_;
  uint64_t id_ = 0, numbers_ = 0;
  trace_clock::time_point until_{};
};

/// Those of this process.
step_traces& traces();

} // namespace lamella::gpu
