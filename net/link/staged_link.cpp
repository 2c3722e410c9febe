#include "net/link/staged_link.hpp"

#include "gpu/ring/device_ring.hpp"

#include <cstring>
#include <memory>

namespace lamella::net {

using gpu::channel_state;

namespace {

/// One direction: from a ring that one side fills to a sender of the other.
struct lane {
  std::shared_ptr<gpu::channel_receiver> from;
  std::shared_ptr<gpu::channel_sender> to;
  bool over = false;

  /// One frame further; false when there is none, or no room for it.
  bool carry() {
    if (over) return false;
    const auto before = from->state(); // first: what was sent before the end still goes out
    const auto* next = from->peek(0);
    if (next == nullptr) {
      if (before != channel_state::open)
        end(before);
      else if (const auto after = to->state(); after != channel_state::open)
        end(after);
      return false;
    }
    auto* place = to->reserve(next->payload.size());
    if (place == nullptr) {
      if (const auto why = to->state(); why != channel_state::open) end(why);
      return false;
    }
    std::memcpy(place, next->payload.data(), next->payload.size());
    to->commit(next->tag);
    from->release();
    return true;
  }

  void end(channel_state why) {
    over = true;
    from->end(why);
    to->end(why);
  }
};

/// Carries frames both ways until the link has ended.
class carrier final : public gpu::work {
public:
  carrier(lane out, lane in) : out_{std::move(out)}, in_{std::move(in)} {}

  progress advance(gpu::kernel_context) override {
    const bool out = out_.carry(), in = in_.carry();
    if (out || in) return progress::advanced;
    // One direction has ended and the other has nothing left: the link is over.
    if (out_.over && !in_.over) in_.end(out_.from->state());
    if (in_.over && !out_.over) out_.end(in_.from->state());
    return out_.over ? progress::done : progress::blocked;
  }

  /// Nothing will be carried any more.
  void end() {
    for (auto* x : {&out_, &in_})
      if (!x->over) x->end(channel_state::closed);
  }

private:
  lane out_, in_;
};

/// The device's ends, and the stream that serves them.
struct staged_link {
  std::shared_ptr<gpu::channel_sender> to;
  std::shared_ptr<gpu::channel_receiver> from;
  std::unique_ptr<gpu::stream> stream; ///< first to go
};

} // namespace

link_end stage(gpu::device& device, gpu::device& host, uint64_t epoch, const link_terms& terms,
               link_end real) {
  gpu::ring_terms rings;
  rings.slots = terms.slots;
  rings.slot_bytes = gpu::slot_room(terms.slot_bytes);
  rings.epoch = epoch;
  const auto out = gpu::make_device_ring(device, host, rings);
  const auto in = gpu::make_device_ring(host, device, rings);
  auto all = std::make_shared<staged_link>();
  all->to = out.to;
  all->from = in.from;
  all->stream = host.make_stream("link");
  auto work = std::make_shared<carrier>(lane{out.from, real.to}, lane{real.from, in.to});
  all->stream->launch(work, gpu::clock::time_point::max(),
                      [work](gpu::work_status) { work->end(); });
  return {std::shared_ptr<gpu::channel_sender>{all, all->to.get()},
          std::shared_ptr<gpu::channel_receiver>{all, all->from.get()}, real.sent};
}

} // namespace lamella::net
