/// GPU EXECUTOR: owns a device, its streams, and the work on them.
#pragma once

#include "actors/actors.hpp"
#include "gpu/device.hpp"

#include <map>
#include <memory>

namespace lamella::actors {

struct gpu_executor_state {
  std::shared_ptr<gpu::device> device;
  std::map<stream_id, std::unique_ptr<gpu::stream>> streams;
  std::map<uint64_t, caf::typed_response_promise<bool>> pending; ///< by ticket
  uint64_t tickets = 0;
  const char* name = "gpu_executor";
};

/// Never blocks: it enqueues and answers when the device says so.
gpu_executor_actor::behavior_type
gpu_executor(gpu_executor_actor::stateful_pointer<gpu_executor_state> self,
             std::shared_ptr<gpu::device> device);

} // namespace lamella::actors
