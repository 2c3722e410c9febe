/// A sender that injects faults (drops or corrupts a frame): for chaos, and tests of the receiver
/// rule.
#pragma once

#include "base/failpoint.hpp"
#include "gpu/ring/channel.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

namespace lamella::net {

/// The next faults. Thread-safe.
struct flaws {
  std::atomic<bool> drop{false};    ///< the next frame is not sent
  std::atomic<bool> corrupt{false}; ///< the header of the next frame has a wrong layer
  /// Until this time no frame is sent.
  std::atomic<std::chrono::steady_clock::time_point> mute_until{
      std::chrono::steady_clock::time_point::min()};
};

/// Forwards everything to another sender, except for injected faults.
class faulty_sender final : public gpu::channel_sender {
public:
  faulty_sender(std::shared_ptr<gpu::channel_sender> inner, std::shared_ptr<flaws> what)
      : inner_{std::move(inner)}, flaws_{std::move(what)} {}

  gpu::channel_state state() const override { return inner_->state(); }
  void end(gpu::channel_state why) override { inner_->end(why); }
  std::byte* reserve(size_t bytes) override { return inner_->reserve(bytes); }
  size_t slot_bytes() const override { return inner_->slot_bytes(); }
  void commit(const gpu::frame_tag& tag) override {
    // Its memory is given out again.
    if (flaws_->drop.exchange(false) || mute() || failpoint_hit(failpoint::link_send)) return;
    auto said = tag;
    if (flaws_->corrupt.exchange(false)) said.layer ^= 1;
    inner_->commit(said);
  }

private:
  bool mute() const {
    const auto until = flaws_->mute_until.load();
    return until != std::chrono::steady_clock::time_point::min()
           && std::chrono::steady_clock::now() < until;
  }

  std::shared_ptr<gpu::channel_sender> inner_;
  std::shared_ptr<flaws> flaws_;
};

} // namespace lamella::net
