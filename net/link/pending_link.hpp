/// Ends of a link that may be used before the two sides have met.
#pragma once

#include "net/link/link.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

namespace lamella::net {

/// Until bind(), a sender without credit and a receiver without frames; after it, the real ends.
/// Thread-safe but for the ends' own rule: one stream each.
class pending_link : public std::enable_shared_from_this<pending_link> {
public:
  /// `bell` is rung when the link is bound or closed before; may be null. `on_end` is called once,
  /// by the first end(), on its thread.
  pending_link(const link_key& key, uint64_t slot_bytes, std::shared_ptr<gpu::listener> bell,
               std::function<void(gpu::channel_state)> on_end);

  /// The ends for the caller; they keep the link alive.
  link_end ends();

  /// Binds the real ends. False, and those are closed, when this link is already closed or bound.
  bool bind(link_end real);

  /// Closes the link for both sides.
  void end(gpu::channel_state why);

  gpu::channel_state state() const;
  bool bound() const { return sender_.load(std::memory_order_acquire) != nullptr; }
  const link_key& key() const { return key_; }

private:
  class sender;
  class receiver;

  const link_key key_;
  const uint64_t slot_bytes_;
  const std::shared_ptr<gpu::listener> bell_;
  std::function<void(gpu::channel_state)> on_end_;
  std::mutex mutex_; ///< of binding and ending
  link_end real_;
  std::atomic<uint64_t> sent_{0}; ///< payload bytes; written by the sender's stream
  frame_drops dropped_;           ///< written by the receiver's stream
  std::atomic<gpu::channel_sender*> sender_{nullptr};
  std::atomic<gpu::channel_receiver*> receiver_{nullptr};
  std::atomic<gpu::channel_state> before_{gpu::channel_state::open};
};

} // namespace lamella::net
