/// GPU EXECUTOR: owns a device, its streams, and the work on them.
#pragma once

#include "actors/protocol/actors.hpp"
#include "gpu/device.hpp"

#include <map>
#include <memory>

namespace lamella::actors {

/// What work that failed, twice on a stream and none that ended well between, does to an executor.
enum class failed_work : uint8_t {
  ends_executor, ///< whoever supervises it makes it and its device anew
  is_told        ///< nobody could: only who asked hears of it
};

struct gpu_executor_state {
  std::shared_ptr<gpu::device> device;
  failed_work rule{};
  std::map<stream_id, std::unique_ptr<gpu::stream>> streams;
  /// Who waits for work, and the stream it runs on.
  struct asked {
    stream_id stream{};
    caf::typed_response_promise<bool> promise;
  };
  std::map<uint64_t, asked> pending;      ///< by ticket
  std::map<stream_id, uint32_t> failures; ///< since its last work that ended well
  uint64_t tickets = 0;
  const char* name = "gpu_executor";
};

/// Never blocks: it enqueues and answers when the device says so. Ends when the device is lost, and
/// by the rule for failed work.
gpu_executor_actor::behavior_type
gpu_executor(gpu_executor_actor::stateful_pointer<gpu_executor_state> self,
             std::shared_ptr<gpu::device> device, failed_work rule);

} // namespace lamella::actors
