/// A link whose frames an RDMA adapter writes into the peer's memory (Lamina 4.1, CPU-posted).
#pragma once

#include "net/link/link.hpp"
#include "net/link/round_trips.hpp"
#include "net/rdma/direct_link.hpp"
#include "net/rdma/verbs.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace lamella::net {

/// Two rings in registered memory. Frames committed by this side's sender are written to the memory
/// that the peer's receiver polls: header and payload, then the seqno, inline, in one post on one
/// connection, which executes writes in order. Credits go back the same way, together with frames
/// if there are any. No thread and no completion is on the path of a frame.
///
/// The socket of the handshake stays open: it detects the end of the peer's process, and measures
/// round trips of hosts and the network, not of their adapters. The plane's thread polls every few
/// milliseconds for failed writes, the peer's close reason, and credits without a frame to go with.
/// Where the rings are in device memory that the adapter reaches (direct_link), the peer's reason
/// is not available: such links close as `closed`. Where streams post themselves, this side polls
/// for failed writes, rings the doorbell if they cannot, and waits at the end for their posts; the
/// peer gets no close reason.
class verbs_link final : public gpu::listener, public std::enable_shared_from_this<verbs_link> {
public:
  using tcp_socket = boost::asio::ip::tcp::socket;

  struct terms {
    gpu::ring_terms rings;
    gpu::ring_identity self;
    std::shared_ptr<gpu::doorbell> bell;     ///< of this side's receiver
    std::chrono::milliseconds linger{1'000}; ///< for the last writes to arrive
    bool asks = false;                       ///< for round trips: one side does
    std::chrono::milliseconds measure_every{1'000};
    std::shared_ptr<round_trips> trips = std::make_shared<round_trips>();
    std::shared_ptr<direct_link> direct;     ///< whose rings are carried; null: rings of the host
    std::function<void(std::string)> on_end; ///< once, on the plane's thread, with the reason
  };

  /// Registers the memory. Throws std::bad_alloc, std::runtime_error.
  verbs_link(boost::asio::any_io_executor executor, verbs_device& device, terms t);
  ~verbs_link() override;

  /// For logs: location of the frames on this side.
  const std::string& where() const { return memory_->how(); }

  /// Parameters for the peer, and the connection to it. Throws std::runtime_error.
  verbs_end here() const { return queue_->here(); }
  void connect(const verbs_end& peer);

  /// Writes a word into the peer's memory; arrived() is true when it has arrived. Throws
  /// std::runtime_error with the reason on failure.
  void greet(uint64_t word);
  bool arrived();
  /// The peer's word.
  uint64_t greeting() const;

  /// Returns this side's ends. Once, on the plane's thread, after both words have arrived. `on_end`
  /// may be called from here on.
  link_end start(tcp_socket socket);

  /// A ring has changed: posts as much as possible. Thread-safe; does not block.
  void ring() override;

  /// Closes both rings, revokes the peer's write access and closes the socket. On the plane's
  /// thread.
  void close(gpu::channel_state why, std::string text);

  /// The same once the last writes have arrived, or at the deadline. Blocks.
  void close_when_settled(std::chrono::steady_clock::time_point deadline);

private:
  std::optional<uint32_t> add_frame(uint32_t slot);
  bool gather(bool flush);
  void push(bool flush);
  void attend(gpu::channel_state ended);
  void say_end(gpu::channel_state why);
  bool work();
  void look();
  void look_again();
  void fail(std::string text);

  boost::asio::any_io_executor executor_;
  std::shared_ptr<tcp_socket> socket_; ///< nothing once closed: the ends, which keep us alive, may
  std::optional<boost::asio::steady_timer> timer_; ///< outlive the plane
  terms terms_;
  gpu::outside_channel looks_;
  std::shared_ptr<link_memory> memory_;
  gpu::ring_control *in_, *out_;
  bool closed_ = false; ///< of the plane's thread, but written under the mutex

  std::mutex mutex_; ///< of all below
  std::unique_ptr<verbs_queue> queue_;
  stream_queue* stream_ = nullptr;  ///< `queue_`, where streams post
  std::vector<verbs_write> writes_; ///< of one post
  gpu::seqno wired_, credited_;     ///< frames posted; slots freed so far
  uint32_t out_index_ = 0;
  uint64_t end_word_ = 0;
  bool shut_ = false; ///< the close was sent to the peer
  std::chrono::steady_clock::time_point shut_at_{};
  std::string failed_; ///< why nothing is sent any more
};

} // namespace lamella::net
