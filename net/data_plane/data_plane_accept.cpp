// The accepting side of links: strangers prove themselves, then wait for their accept().
#include "net/data_plane/data_plane_impl.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <stdexcept>

namespace lamella::net {

using asio::use_awaitable;
using boost::system::error_code;
using gpu::channel_state;

namespace {

/// Between two looks when the process is out of descriptors.
constexpr std::chrono::milliseconds accept_pause{100};

using unix_socket = asio::local::stream_protocol::socket;

/// What a peer sends when it has been challenged.
struct peer_answer {
  answer proof;
  std::vector<owned_descriptor> descriptors; ///< by Unix sockets only
};

template <class Socket> asio::awaitable<peer_answer> receive_answer(Socket& socket) {
  peer_answer x;
  if constexpr (std::is_same_v<Socket, unix_socket>) {
    co_await socket.async_wait(Socket::wait_read, use_awaitable);
    x.descriptors = receive_descriptors(socket.native_handle(), bytes_of(x.proof));
  } else {
    co_await asio::async_read(socket, asio::buffer(&x.proof, sizeof x.proof), use_awaitable);
  }
  co_return x;
}

/// Throws std::runtime_error where a peer on this host is not of this user.
template <class Socket> void prepare(Socket& socket) {
  if constexpr (std::is_same_v<Socket, unix_socket>) {
    if (!same_user(socket.native_handle())) throw std::runtime_error{"it runs as another user"};
  } else {
    socket.set_option(asio::ip::tcp::no_delay{true});
  }
}

} // namespace

/// Members of an epoch connect all at once, each as a stranger at first: who comes while there are
/// too many is not turned away and waits, others behind it in the kernel's queue, until one has
/// proved itself, has left, or was silent for too long.
template <class Acceptor>
asio::awaitable<void> data_plane::impl::accept(Acceptor& acceptor, asio::steady_timer& room) {
  using socket_type = typename Acceptor::protocol_type::socket;
  while (true) {
    error_code ec;
    auto socket = std::make_shared<socket_type>(io);
    co_await acceptor.async_accept(*socket, asio::redirect_error(use_awaitable, ec));
    if (ec) {
      asio::steady_timer pause{io, accept_pause};
      co_await pause.async_wait(use_awaitable);
      continue;
    }
    while (const auto until = full_until()) {
      room.expires_at(*until);
      co_await room.async_wait(asio::redirect_error(use_awaitable, ec)); // or is cancelled
    }
    const auto number = ++arrivals;
    strangers.emplace(number, stranger{clock::now(), [socket] {
                                         error_code ignored;
                                         if (socket->available(ignored) > 0) return false;
                                         socket->close(ignored);
                                         return true;
                                       }});
    asio::co_spawn(io, serve(number, std::move(socket)), asio::detached);
  }
}

asio::awaitable<void> data_plane::impl::accept_unix() { return accept(*unix_acceptor, unix_room); }
asio::awaitable<void> data_plane::impl::accept_tcp() { return accept(*tcp_acceptor, tcp_room); }

/// The oldest silent one makes room. Whoever has sent what this thread has yet to read is not
/// silent.
std::optional<data_plane::impl::clock::time_point> data_plane::impl::full_until() {
  if (strangers.size() < options.strangers_max) return {};
  const auto now = clock::now();
  for (auto x = strangers.begin(); x != strangers.end(); ++x) {
    const auto patient_until = x->second.since + options.silence;
    if (now < patient_until) return patient_until; // those behind it are younger
    if (!x->second.close_if_silent()) continue;
    strangers.erase(x);
    return {};
  }
  return now + accept_pause;
}

uint64_t data_plane::impl::greeted(uint64_t number) {
  auto known = strangers.extract(number);
  if (known.empty()) throw std::runtime_error{"it had to make room"};
  known.key() = ++arrivals;
  known.mapped().since = clock::now();
  strangers.insert(std::move(known));
  return arrivals;
}

bool data_plane::impl::no_more_a_stranger(uint64_t number) {
  if (strangers.erase(number) == 0) return false;
  unix_room.cancel();
  tcp_room.cancel();
  return true;
}

/// From the first byte to the link. Whoever fails to prove itself is told nothing.
template <class Socket>
asio::awaitable<void> data_plane::impl::serve(uint64_t number, std::shared_ptr<Socket> socket) {
  constexpr bool shared = std::is_same_v<Socket, unix_socket>;
  auto transport = shared ? link_transport::shm : link_transport::tcp;
  bool proven = false;
  hello h;
  std::string failed;
  time_limit limit{socket, options.handshake};
  try {
    prepare(*socket);
    error_code ec;
    const auto got = co_await asio::async_read(*socket, asio::buffer(&h, sizeof h),
                                               asio::redirect_error(use_awaitable, ec));
    // A probe that looks whether we listen: no line in logs.
    if (ec && got == 0 && !limit.over() && no_more_a_stranger(number)) co_return;
    if (ec) throw boost::system::system_error{ec};
    if (auto wrong = check(h, shared, options.cluster); !wrong.empty())
      throw std::runtime_error{wrong};
    number = greeted(number);
    if (h.transport != asks_only) transport = static_cast<link_transport>(h.transport);
    challenge c;
    c.mine = make_nonce();
    c.proof = prove(options.secret, "accepting", h, c.mine);
    const auto began = clock::now();
    co_await asio::async_write(*socket, asio::buffer(&c, sizeof c), use_awaitable);
    auto answered = co_await receive_answer(*socket);
    const std::chrono::nanoseconds round_trip = clock::now() - began;
    if (!equal(answered.proof.proof, prove(options.secret, "connecting", h, c.mine)))
      throw std::runtime_error{"it has another secret"};
    proven = no_more_a_stranger(number);
    if (!proven) throw std::runtime_error{"it had to make room"};
    limit.cancel();
    if (h.transport == asks_only) {
      try {
        co_await answer_reach(socket);
      } catch (const std::exception&) { // who asked has gone, or cannot be reached
      }
      co_return;
    }
    if (isolated()) throw std::runtime_error{"isolated by fault injection"};
    co_await admit(h, socket, std::move(answered.descriptors), round_trip, c.mine);
  } catch (const std::exception& e) {
    failed = limit.over() ? "it did not authenticate within "
                                + std::to_string(options.handshake.count()) + " ms"
                          : e.what();
  }
  if (!proven && !no_more_a_stranger(number))
    failed = "it was silent while others waited for its place";
  if (!failed.empty() && options.on_event)
    options.on_event({link_event::kind::refused, h.key(), false, transport, "a peer: " + failed});
}

/// A peer that has proved itself: its link is made when accept() has been called, or it is told why
/// not.
template <class Socket>
asio::awaitable<void> data_plane::impl::admit(hello h, std::shared_ptr<Socket> socket,
                                              std::vector<owned_descriptor> descriptors,
                                              std::chrono::nanoseconds round_trip, nonce mine) {
  constexpr bool shared = std::is_same_v<Socket, unix_socket>;
  if constexpr (!shared)
    if (h.transport == static_cast<uint16_t>(link_transport::verbs_staged)) {
      co_await admit_verbs(h, socket, round_trip, mine);
      co_return;
    }
  const side s{h.key(), false};
  const link_terms theirs = h.terms();
  record_ptr r;
  std::shared_ptr<shm_segment> segment;
  std::shared_ptr<gpu::doorbell> their_bell;
  verdict v;
  const std::string why = "chosen by the peer"; // named, see connect()
  try {
    r = co_await meet(s.key, theirs, options.early);
    r->round_trip = round_trip;
    if constexpr (shared) {
      if (descriptors.size() != 3)
        throw std::runtime_error{"no shared-memory segment and doorbell received"};
      segment =
          std::make_shared<shm_segment>(std::move(descriptors[0]), ring_terms_of(s.key, theirs));
      their_bell =
          std::make_shared<gpu::doorbell>(std::array{descriptors[1].get(), descriptors[2].get()});
    }
  } catch (const std::exception& e) {
    v = refusal(e.what());
  }
  if constexpr (shared) {
    const auto our_bell = bell->descriptors();
    co_await socket->async_wait(Socket::wait_write, use_awaitable);
    send_descriptors(socket->native_handle(), bytes_of(v),
                     std::span{our_bell}.first(v.refused != 0 ? 0 : our_bell.size()));
    if (v.refused != 0) throw std::runtime_error{text_of(v)};
    co_await finish_shm(s, r, socket, segment, their_bell, why);
  } else {
    co_await asio::async_write(*socket, asio::buffer(&v, sizeof v), use_awaitable);
    if (v.refused != 0) throw std::runtime_error{text_of(v)};
    finish_tcp(s, r, std::move(*socket), why);
  }
}

asio::awaitable<data_plane::impl::record_ptr>
data_plane::impl::meet(link_key key, link_terms theirs, std::chrono::milliseconds timeout) {
  const auto deadline = clock::now() + timeout;
  while (true) {
    if (epochs.ended(key.epoch)) throw std::runtime_error{to_string(key) + ": the epoch is closed"};
    const auto found = records.find({key, false});
    if (found != records.end() && !found->second->link->bound()
        && found->second->link->state() == channel_state::open) {
      const auto& ours = found->second->terms;
      if (ours.slots == theirs.slots && ours.slot_bytes == theirs.slot_bytes
          && ours.first_counter == theirs.first_counter)
        co_return found->second;
      throw std::runtime_error{to_string(key) + ": " + std::to_string(theirs.slots) + " slots of "
                               + std::to_string(theirs.slot_bytes) + " bytes, here "
                               + std::to_string(ours.slots) + " of "
                               + std::to_string(ours.slot_bytes)};
    }
    if (clock::now() >= deadline)
      throw std::runtime_error{to_string(key) + ": this link is not expected"};
    if (early.contains(key))
      throw std::runtime_error{to_string(key) + ": another connection is already waiting for it"};
    if (early.size() >= options.early_max)
      throw std::runtime_error{"too many links arrived before they were expected"};
    const auto timer = std::make_shared<asio::steady_timer>(io, deadline);
    early.emplace(key, timer);
    error_code ignored;
    co_await timer->async_wait(asio::redirect_error(use_awaitable, ignored));
    early.erase(key);
  }
}

} // namespace lamella::net
