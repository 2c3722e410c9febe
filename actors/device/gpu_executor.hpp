/// GPU EXECUTOR: owns a device, its streams, and the work on them.
#pragma once

#include "actors/protocol/actors.hpp"
#include "gpu/device.hpp"
#include "gpu/trace/step_trace.hpp"

#include <map>
#include <memory>

namespace lamella::actors {

/// Effect on an executor of two failed works in a row on a stream.
enum class failed_work : uint8_t {
  ends_executor, ///< the supervisor rebuilds it and its device
  is_told        ///< no rebuild is possible: only the requester gets the error
};

struct gpu_executor_state {
  std::shared_ptr<gpu::device> device;
  failed_work rule{};
  std::map<stream_id, std::unique_ptr<gpu::stream>> streams;
  std::map<stream_id, std::shared_ptr<gpu::step_lane>> lanes; ///< where streams are not the host's
  /// The requester of a work, and its stream.
  struct asked {
    stream_id stream{};
    caf::typed_response_promise<bool> promise;
  };
  std::map<uint64_t, asked> pending;      ///< by ticket
  std::map<stream_id, uint32_t> failures; ///< since its last successful work
  uint64_t tickets = 0;
  const char* name = "gpu_executor";
};

/// Never blocks: it enqueues and replies when the device completes. Terminates when the device is
/// lost, and by the rule for failed work.
gpu_executor_actor::behavior_type
gpu_executor(gpu_executor_actor::stateful_pointer<gpu_executor_state> self,
             std::shared_ptr<gpu::device> device, failed_work rule);

} // namespace lamella::actors
