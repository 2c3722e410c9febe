/// A link over an authenticated TCP connection.
#pragma once

#include "net/link/link.hpp"
#include "net/link/round_trips.hpp"
#include "net/link/shm_segment.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace lamella::net {

/// Carries two rings of this process over a socket: frames are sent from one ring unchanged, header
/// and payload, and are read into the slots of the other. The sender's slots are freed by the
/// receiver's credits, as if the memory were shared; so there is never more data on the wire than
/// the receiver has room for, and a socket that accepts no data means a peer that reads nothing.
///
/// The thread that commits a frame writes it, with all pending data, in one call. The waiter of the
/// doorbell (the engine that waits for frames) reads, and writes what the socket did not accept at
/// first, so that a frame wakes only one thread. Each side sends periodic pings, which the reader
/// of the peer answers: they measure the round trip of frames, and detect a lost host on an idle
/// link.
class tcp_link final : public gpu::listener, public std::enable_shared_from_this<tcp_link> {
public:
  struct terms {
    gpu::ring_terms rings; ///< of both; every payload gets a CRC
    gpu::ring_identity self;
    std::shared_ptr<gpu::doorbell> bell; ///< of this side's receiver
    std::chrono::milliseconds unread{
        0}; ///< timeout after which a peer that reads nothing is cut off
    std::function<void(std::string)> on_end; ///< once, on the plane's thread, with the reason
    std::chrono::milliseconds measure_every{1'000};
    std::shared_ptr<round_trips> trips = std::make_shared<round_trips>();
  };

  /// Throws std::bad_alloc, std::system_error.
  tcp_link(boost::asio::ip::tcp::socket socket, terms t);
  ~tcp_link() override;

  /// Starts reading by the bell's waiter, and returns this side's ends. Once, on the plane's
  /// thread. Throws std::system_error.
  link_end start();

  /// A ring has changed: writes as much as possible. Thread-safe.
  void ring() override;

  /// Closes both rings and the socket. On the plane's thread.
  void close(gpu::channel_state why, std::string text);

private:
  struct piece {
    const std::byte* data;
    size_t bytes;
  };
  /// Rung when the socket is readable, or writable with data pending.
  struct readiness final : gpu::listener {
    explicit readiness(tcp_link& x) : link{x} {}
    void ring() override { link.on_ready(); }
    tcp_link& link;
  };

  void on_ready();
  bool gather();
  void push();
  void look_later();
  void ask();
  void read();
  bool take(const std::byte* data, size_t bytes);
  bool on_header();
  bool on_credit();
  bool on_ping();
  bool on_pong();
  void deliver();
  bool refuse(gpu::channel_state why, std::string text);
  std::string unread_text() const;

  boost::asio::any_io_executor executor_;
  owned_descriptor socket_; ///< not watched by the plane's thread, which would wake for every frame
  /// Empty once closed: the ends, which keep this link alive, may outlive the plane.
  std::optional<boost::asio::steady_timer> timer_;
  terms terms_;
  std::optional<gpu::outside_channel> polled_; ///< where the waiter reads
  std::byte* memory_ = nullptr;
  gpu::ring_control *out_, *in_;
  bool closed_ = false; ///< of the plane's thread, but written under both mutexes

  std::mutex mutex_;                             ///< of writing; taken after the other one
  std::vector<piece> pieces_;                    ///< being written
  gpu::frame_header credit_{}, ping_{}, pong_{}; ///< one of each, at times
  bool ping_due_ = false, pong_due_ = false;
  bool asked_ = false; ///< a ping without its pong
  std::chrono::steady_clock::time_point asked_at_ = std::chrono::steady_clock::now();
  gpu::seqno wired_, credited_; ///< frames handed to the socket; slots freed so far
  uint32_t out_index_ = 0;
  /// Since when the socket accepts no data.
  std::optional<std::chrono::steady_clock::time_point> blocked_;
  bool timed_out_ = false; ///< the kernel timed out first on a peer that reads nothing
  bool shut_ = false;      ///< our end of the stream is shut down

  std::mutex reading_; ///< of all below
  readiness readiness_{*this};
  bool deaf_ = false;          ///< reads no more
  gpu::frame_header header_{}; ///< being read
  size_t header_bytes_ = 0, payload_bytes_ = 0;
  gpu::seqno arrived_;
  uint32_t in_index_ = 0;
  bool news_ = false, was_asked_ = false;
  std::vector<std::byte> stage_;
};

} // namespace lamella::net
