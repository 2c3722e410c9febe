/// ASIDE: runs jobs that are too long for a message handler, concurrently with the actors and few
/// at a time.
#pragma once

#include <caf/all.hpp>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace lamella::actors {

/// Jobs of one lane wait only for each other.
enum class aside_lane : uint8_t {
  brief,   ///< milliseconds each: bodies of usual size, metrics pages
  bulky,   ///< large bodies and answers
  formats, ///< schemas and expressions of structured output
};
inline constexpr size_t aside_lanes = 3;

/// Size limit in bytes of what is read or written within milliseconds.
inline constexpr size_t brief_bytes_max = size_t{16} << 10;
inline aside_lane lane_of(size_t bytes) {
  return bytes <= brief_bytes_max ? aside_lane::brief : aside_lane::bulky;
}

/// `run` owns its data and reports its own result.
struct aside_job {
  aside_lane lane = aside_lane::brief;
  std::function<void()> run;
};

using aside_worker_actor = caf::typed_actor<caf::reacts_to<aside_job>>;

/// The worker is idle.
struct aside_idle {
  aside_lane lane = aside_lane::brief;
  aside_worker_actor worker;
};

/// A job: the next free worker of its lane runs it, the oldest first.
using aside_actor = caf::typed_actor<caf::reacts_to<aside_job>, caf::reacts_to<aside_idle>>;

struct aside_config {
  uint32_t workers = 1; ///< of each lane
  bool threads = true;  ///< one for each worker; else workers take their turns as actors do
};

struct aside_state {
  struct lane {
    std::deque<std::function<void()>> waiting;
    std::vector<aside_worker_actor> idle;
  };
  std::array<lane, aside_lanes> lanes;
  const char* name = "aside";
};

aside_actor::behavior_type aside(aside_actor::stateful_pointer<aside_state> self,
                                 aside_config config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::aside_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::aside_idle)
