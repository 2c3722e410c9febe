/// Implementation of data_plane: the state of its thread.
#pragma once

#include "net/data_plane/data_plane.hpp"
#include "net/data_plane/ended_epochs.hpp"
#include "net/data_plane/handshake.hpp"
#include "net/data_plane/peer_address.hpp"
#include "net/http/time_limit.hpp"
#include "net/link/pending_link.hpp"
#include "net/link/round_trips.hpp"
#include "net/link/shm_segment.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <atomic>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>

namespace lamella::net {

namespace asio = boost::asio;
class direct_link;
class tcp_link;
class verbs_link;

/// All members are used by the plane's thread alone, except where marked.
struct data_plane::impl : std::enable_shared_from_this<data_plane::impl> {
  using tcp_socket = asio::ip::tcp::socket;
  using unix_socket = asio::local::stream_protocol::socket;
  using clock = std::chrono::steady_clock;
  template <class T> using task = asio::awaitable<T>;

  /// A side of a link: keys are the same on both, and both may be in this process.
  struct side {
    link_key key;
    bool connecting = false;
    auto operator<=>(const side&) const = default;
  };

  /// A link requested by this process.
  struct record {
    std::shared_ptr<pending_link> link;
    std::shared_ptr<direct_link> direct; ///< of a device whose memory an adapter reaches, or null
    std::weak_ptr<verbs_link> carrier;   ///< of those rings, while it or its conversation goes on
    link_terms terms;
    link_transport transport = link_transport::in_process;
    std::chrono::nanoseconds round_trip{0};
    std::shared_ptr<round_trips> trips = std::make_shared<round_trips>();
    std::function<void()> hang_up;             ///< once it is up: closes its connection
    std::shared_ptr<asio::steady_timer> limit; ///< of waiting for the other side
  };
  using record_ptr = std::shared_ptr<record>;

  explicit impl(data_plane_options o);

  void listen();
  void start(); ///< after listen()
  void stop();  ///< from outside

  /// Creates the ends at once and leaves the rest to the thread. Thread-safe.
  link_end open(const side& s, const link_terms& terms, std::chrono::milliseconds timeout,
                const std::shared_ptr<gpu::device>& device, std::optional<peer_address> to);

  /// The rings of a side whose streams use them in memory of their device.
  std::shared_ptr<direct_link> make_direct(const side& s, const link_terms& terms,
                                           const std::shared_ptr<gpu::device>& device) const;

  void expect(const side& s, const record_ptr& r, std::chrono::milliseconds timeout);
  void end_epoch(uint64_t epoch);
  void on_link_end(const side& s, const record_ptr& gone, gpu::channel_state why);
  void report(const side& s, const record& r, link_event::kind what, std::string text);

  /// Closes a link that cannot be created, with the reason.
  void give_up(const side& s, const record_ptr& r, const std::string& text);

  /// Binds a record's link. False when the link was closed meanwhile.
  bool bind(const side& s, const record_ptr& r, link_end real, link_transport transport,
            std::string text, std::function<void()> hang_up);

  gpu::ring_terms ring_terms_of(const link_key& key, const link_terms& terms) const;

  task<void> attend();

  // Connecting (data_plane_connect.cpp).
  task<void> connect(side s, record_ptr r, std::chrono::milliseconds timeout, peer_address to);
  task<void> connect_in_process(side s, record_ptr r, std::chrono::milliseconds timeout,
                                std::string why);
  task<void> connect_shm(side s, record_ptr r, std::chrono::milliseconds timeout,
                         const std::string& path, std::string why);
  /// Connects to HOST:PORT, whose name is looked up first; all within `timeout`, as far as the
  /// lookup goes (the socket has a limit of its own).
  task<void> reach(std::shared_ptr<tcp_socket> socket, const std::string& where_to,
                   std::chrono::milliseconds timeout);
  task<void> connect_tcp(side s, record_ptr r, std::chrono::milliseconds timeout,
                         const std::string& address, std::string why);
  /// Throws other_way when the two cannot reach each other by RDMA, but perhaps otherwise.
  task<void> connect_verbs(side s, record_ptr r, std::chrono::milliseconds timeout,
                           const std::string& address, std::string why);

  /// A hint where a peer is unreachable; empty: none.
  std::string hint_of(const peer_address& to) const;

  // Asking whether peers can be reached (data_plane_reach.cpp).
  std::shared_ptr<const peer_reach> watch(peer_address to);
  task<void> keep_asking(std::weak_ptr<peer_reach> of, peer_address to);
  void note_failure(const std::weak_ptr<peer_reach>& of, const peer_address& to, link_transport by,
                    const std::string& reason);
  template <class Socket> task<void> introduce_reach(std::shared_ptr<Socket> socket);
  template <class Socket>
  task<void> ask(std::weak_ptr<peer_reach> of, std::shared_ptr<Socket> socket);
  template <class Socket> task<void> answer_reach(std::shared_ptr<Socket> socket);

  // Accepting (data_plane_accept.cpp).
  template <class Acceptor> task<void> accept(Acceptor& acceptor, asio::steady_timer& room);
  task<void> accept_unix();
  task<void> accept_tcp();
  /// Nothing where one more stranger may come, perhaps in place of another; else when to look
  /// again.
  std::optional<clock::time_point> full_until();
  /// A stranger whose hello is good counts as one that has just come: those that have sent none
  /// make room before it. Its new number; throws std::runtime_error where it had to make room.
  uint64_t greeted(uint64_t number);
  /// False where it had to make room before.
  bool no_more_a_stranger(uint64_t number);
  template <class Socket> task<void> serve(uint64_t number, std::shared_ptr<Socket> socket);
  template <class Socket>
  task<void> admit(hello h, std::shared_ptr<Socket> socket,
                   std::vector<owned_descriptor> descriptors, std::chrono::nanoseconds round_trip,
                   nonce mine);
  task<void> admit_verbs(hello h, std::shared_ptr<tcp_socket> socket,
                         std::chrono::nanoseconds round_trip, nonce mine);
  /// The record that accept() created or creates within `timeout`. Throws std::runtime_error.
  task<record_ptr> meet(link_key key, link_terms theirs, std::chrono::milliseconds timeout);

  // Both.
  task<void> finish_shm(side s, record_ptr r, std::shared_ptr<unix_socket> socket,
                        std::shared_ptr<shm_segment> segment,
                        std::shared_ptr<gpu::doorbell> their_bell, std::string why);
  void finish_tcp(const side& s, const record_ptr& r, tcp_socket socket, std::string why);
  std::shared_ptr<verbs_link> make_verbs(const side& s, const record_ptr& r);
  /// Writes a word into the peer's memory and waits until it is there.
  task<void> greet(std::shared_ptr<verbs_link> link, uint64_t word);
  void finish_verbs(const side& s, const record_ptr& r, std::shared_ptr<verbs_link> link,
                    tcp_socket socket, const std::string& why);

  const data_plane_options options;
  const std::shared_ptr<gpu::doorbell> bell;
  peer_address self;
  std::string address;
  ended_epochs epochs;                                                     ///< any thread
  std::atomic<clock::time_point> isolated_until{clock::time_point::min()}; ///< any thread
  bool isolated() const { return clock::now() < isolated_until.load(); }
  bool stopping = false;
  asio::io_context io{1};
  /// A connection that has not proved itself yet.
  struct stranger {
    clock::time_point since;               ///< its arrival, or its hello
    std::function<bool()> close_if_silent; ///< whether it was
  };
  std::map<uint64_t, stranger> strangers; ///< in the order of `since`
  uint64_t arrivals = 0;
  asio::steady_timer unix_room{io}, tcp_room{io}; ///< cancelled when one stranger less is there
  std::optional<asio::ip::tcp::acceptor> tcp_acceptor;
  std::optional<asio::local::stream_protocol::acceptor> unix_acceptor;
  std::map<side, record_ptr> records;
  std::map<link_key, std::shared_ptr<asio::steady_timer>> early; ///< wait for their accept()
  std::vector<std::weak_ptr<tcp_link>> tcp_links;     ///< to be closed before the context goes
  std::vector<std::weak_ptr<verbs_link>> verbs_links; ///< likewise
  std::optional<link_transport> forced; ///< by the options; nothing: the best there is
  std::shared_ptr<verbs_device> verbs;  ///< null: the reason is in `no_verbs`
  std::string no_verbs;
  std::thread thread;
};

/// This transport does not reach the peer, but another one may.
struct other_way : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The connecting side's proof, and the inputs of the peer's proof.
struct introduction {
  answer proof;
  nonce theirs;
};

/// Sends the hello and checks the peer's proof; also measures the round trip.
template <class Socket>
asio::awaitable<introduction> introduce(Socket& socket, hello h, const std::string& secret,
                                        std::chrono::nanoseconds& round_trip) {
  const auto began = std::chrono::steady_clock::now();
  co_await asio::async_write(socket, asio::buffer(&h, sizeof h), asio::use_awaitable);
  challenge c;
  co_await asio::async_read(socket, asio::buffer(&c, sizeof c), asio::use_awaitable);
  round_trip = std::chrono::steady_clock::now() - began;
  if (!equal(c.proof, prove(secret, "accepting", h, c.mine)))
    throw std::runtime_error{"the peer has another secret"};
  co_return introduction{{prove(secret, "connecting", h, c.mine)}, c.mine};
}

/// The first message of a link.
hello hello_of(const link_key& key, const link_terms& terms, link_transport transport,
               uint32_t cluster);

} // namespace lamella::net
