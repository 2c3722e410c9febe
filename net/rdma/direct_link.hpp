/// Links of a device whose memory an RDMA adapter reads and writes: no copy and no host thread
/// between its streams and the peer's, except for the post (GPUDirect; Lamina 4.1).
#pragma once

#include "net/link/pending_link.hpp"
#include "net/rdma/link_memory.hpp"

#include <memory>
#include <mutex>
#include <optional>

namespace lamella::net {

/// How frames in the rings of a device's streams are posted.
struct stream_posting {
  std::shared_ptr<verbs_device> adapter; ///< into queues of this one the streams themselves
  bool rings =
      false; ///< and they ring its bell (fhbn); else the host does, for all they have posted
};

/// The rings of one side, used by streams of the device from the beginning, as rings in memory of
/// its own: frames that it sends wait for the link, and it waits for those of the peer. Where the
/// host posts, changes are forwarded to the poster once it is set.
///
/// Kernels compare a frame's header with the one they expect, but neither who sent it nor a
/// checksum: the queue is the peer's alone, and the adapters' own checks cover the wire.
class direct_link final : public gpu::listener, public std::enable_shared_from_this<direct_link> {
public:
  /// May wait for the device, and throws as gpu::device::make_adapter_memory, map_register and
  /// verbs_device::make_stream_queue.
  direct_link(const std::shared_ptr<gpu::device>& device, const gpu::ring_terms& rings,
              gpu::ring_identity self, const std::optional<stream_posting>& by_stream = {});

  const std::shared_ptr<link_memory>& memory() const { return memory_; }

  /// The queue that streams post into, to be connected; once. Null where the host posts.
  std::unique_ptr<stream_queue> take_queue();
  /// Whether streams ring the adapter's bell.
  bool rings_itself() const { return bell_ != nullptr; }
  /// The queue is connected: frames of the streams are sent by their own posts.
  void open(stream_queue& queue);

  /// For streams of the device. When both are gone the link ends, and so it does when one of them
  /// ends it. Once.
  link_end ends(gpu::device& device, const std::shared_ptr<pending_link>& link);

  /// From now on `posts` is notified of every change, and at once of earlier ones.
  void attach(std::weak_ptr<gpu::listener> posts);

  /// Ends both rings: waits of the device end.
  void end(gpu::channel_state why);

  /// The device has sent, released or ended. Any thread.
  void ring() override;

private:
  std::shared_ptr<link_memory> memory_;
  gpu::ring_identity self_;
  std::shared_ptr<gpu::stream_posts> posts_by_stream_;
  std::unique_ptr<stream_queue> queue_; ///< goes before its memory
  uint64_t* bell_ = nullptr;            ///< as kernels write it
  std::mutex mutex_;                    ///< of the two below
  std::weak_ptr<pending_link> link_;
  std::weak_ptr<gpu::listener> posts_;
};

/// What the plane holds of such a link in place of a host's ends: it can end them and see their
/// state, and no more.
link_end host_side_of(const std::shared_ptr<link_memory>& memory,
                      std::shared_ptr<gpu::listener> posts);

} // namespace lamella::net
