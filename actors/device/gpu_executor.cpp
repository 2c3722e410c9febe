#include "actors/device/gpu_executor.hpp"

#include "actors/shared/exceptions.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

using executor_ptr = gpu_executor_actor::stateful_pointer<gpu_executor_state>;

gpu::stream& stream_of(executor_ptr self, stream_id id) {
  auto& slot = self->state.streams[id];
  if (!slot) slot = self->state.device->make_stream(std::to_string(static_cast<uint32_t>(id)));
  return *slot;
}

/// A device whose steps the host does not see tells of whole works, when they have ended.
std::shared_ptr<gpu::step_lane> lane_of(executor_ptr self, stream_id id) {
  const auto& device = *self->state.device;
  if (device.on_host()) return nullptr;
  auto& lane = self->state.lanes[id];
  if (!lane)
    lane = gpu::traces().make_lane(device.name(), std::to_string(static_cast<uint32_t>(id)));
  return lane;
}

void trace(const std::shared_ptr<gpu::step_lane>& lane, const gpu::work& x) {
  if (!lane || !gpu::traces().on()) return;
  const auto now = gpu::clock::now();
  const auto* traced = dynamic_cast<const gpu::traced_work*>(&x);
  lane->add_whole(traced != nullptr ? traced->whole() : gpu::step_label{}, now - x.busy(), now);
}

/// So often in a row may work of a stream fail before the device is not to be trusted.
constexpr uint32_t failures_max = 2;

caf::result<bool> run(executor_ptr self, stream_id id, const work_ptr& work,
                      caf::timespan timeout) {
  auto promise = self->make_response_promise<bool>();
  const auto ticket = ++self->state.tickets;
  self->state.pending.emplace(ticket, gpu_executor_state::asked{id, promise});
  const auto deadline =
      self->clock().now() + std::chrono::duration_cast<gpu::clock::duration>(timeout);
  // Runs on the device's driver thread, so it may only post a message.
  stream_of(self, id).launch(work, deadline,
                             [me = caf::actor_cast<gpu_executor_actor>(self), ticket,
                              lane = lane_of(self, id), work](gpu::work_status status) {
                               trace(lane, *work);
                               caf::anon_send(me, wake_atom_v, ticket,
                                              static_cast<uint8_t>(status));
                             });
  return promise;
}

void on_mark(executor_ptr self, uint64_t ticket, gpu::work_status status) {
  auto node = self->state.pending.extract(ticket);
  if (!node) return;
  auto& [stream, promise] = node.mapped();
  switch (status) {
  case gpu::work_status::done:
    self->state.failures.erase(stream);
    promise.deliver(true);
    return;
  case gpu::work_status::aborted:
    promise.deliver(caf::make_error(ec::aborted));
    return;
  case gpu::work_status::cut: // the device is well; the other end is not
    promise.deliver(caf::make_error(ec::link_cut));
    return;
  case gpu::work_status::deadline:
    promise.deliver(caf::make_error(ec::deadline));
    return;
  case gpu::work_status::failed:
    promise.deliver(caf::make_error(ec::device_lost));
    if (++self->state.failures[stream] < failures_max || self->state.rule == failed_work::is_told)
      return;
    spdlog::error("device failed device=\"{}\" stream={} failures={}", self->state.device->name(),
                  static_cast<uint32_t>(stream), failures_max);
    self->quit(caf::make_error(ec::device_lost, self->state.device->name()));
    return;
  case gpu::work_status::lost:
    promise.deliver(caf::make_error(ec::device_lost));
    self->quit(caf::make_error(ec::device_lost, self->state.device->name()));
    return;
  }
}

} // namespace

gpu_executor_actor::behavior_type
gpu_executor(gpu_executor_actor::stateful_pointer<gpu_executor_state> self,
             std::shared_ptr<gpu::device> device, failed_work rule) {
  end_on_exceptions(self);
  self->state.rule = rule;
  self->state.device = std::move(device);
  return {
      [self](stream_id id, const work_ptr& work, caf::timespan timeout) {
        return run(self, id, work, timeout);
      },
      [self](abort_atom, stream_id id) { stream_of(self, id).abort(); },
      [self](wake_atom, uint64_t ticket, uint8_t status) {
        on_mark(self, ticket, static_cast<gpu::work_status>(status));
      },
  };
}

} // namespace lamella::actors
