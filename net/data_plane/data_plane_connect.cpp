// The connecting side of links: choosing a transport, and the conversation up to the first frame.
#include "net/data_plane/data_plane_impl.hpp"
#include "net/link/in_process_channel.hpp"
#include "net/link/tcp_link.hpp"

#include <boost/asio/connect.hpp>
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

constexpr std::chrono::milliseconds poll_interval{5}; ///< whether a name has been looked up

} // namespace

hello hello_of(const link_key& key, const link_terms& terms, link_transport transport,
               uint32_t cluster) {
  hello h;
  h.transport = static_cast<uint16_t>(transport);
  h.cluster = cluster;
  h.slots = terms.slots;
  h.slot_bytes = terms.slot_bytes;
  h.first_counter = terms.first_counter;
  h.epoch = key.epoch;
  h.stream = key.stream;
  h.replica = key.replica;
  h.shard = key.shard;
  h.mine = make_nonce();
  return h;
}

/// The best way there is, and why the better ones are not.
asio::awaitable<void> data_plane::impl::connect(side s, record_ptr r,
                                                std::chrono::milliseconds timeout,
                                                peer_address to) {
  const bool any = !forced;
  const auto wanted = forced.value_or(link_transport::tcp);
  const bool here = to.process == self.process;
  const bool same_host = to.host == self.host;
  // Named: GCC 12 destroys some temporaries of a co_await twice.
  std::string why = "as configured";
  try {
    if (isolated()) throw std::runtime_error{"isolated by fault injection"};
    if (wanted == link_transport::in_process && !here)
      throw std::runtime_error{"the peer is another process"};
    if ((any && here) || wanted == link_transport::in_process) {
      if (any) why = "same process";
      co_await connect_in_process(s, r, timeout, why);
      co_return;
    }
    r->transport = link_transport::shm;
    if (wanted == link_transport::shm && to.unix_path.empty())
      throw std::runtime_error{"the peer has no unix socket"};
    if (wanted == link_transport::shm || (any && same_host && !to.unix_path.empty())) {
      if (any) why = "same host";
      try {
        co_await connect_shm(s, r, timeout, to.unix_path, why);
        co_return;
      } catch (const boost::system::system_error& e) {
        // Nobody has read the hello yet: another way may still be tried.
        if (!any || to.tcp.empty() || r->link->state() != channel_state::open) throw;
        why = std::string{"no shared memory: "} + e.what();
      }
    } else if (any) {
      why = same_host ? "the peer has no unix socket" : "another host";
    }
    r->transport = link_transport::tcp;
    const bool rdma = over_verbs(wanted);
    if (rdma) {
      r->transport = r->direct ? wanted : link_transport::verbs_staged;
      if (!verbs) throw std::runtime_error{"RDMA verbs are not available: " + no_verbs};
      if (to.verbs.empty()) throw std::runtime_error{"the peer has no RDMA port in use"};
    }
    // The adapters' numbers are told over TCP.
    const auto tcp = reachable_tcp(to, options.home);
    if (verbs && !to.verbs.empty() && (any || rdma)) {
      try {
        co_await connect_verbs(s, r, timeout, tcp, why);
        co_return;
      } catch (const other_way& e) {
        if (!any || r->link->state() != channel_state::open) throw;
        why += std::string{"; no verbs: "} + e.what();
      }
    } else if (any) {
      why += "; no verbs: " + (verbs ? std::string{"the peer has no RDMA port in use"} : no_verbs);
    }
    co_await connect_tcp(s, r, timeout, tcp, why);
  } catch (const std::exception& e) {
    give_up(s, r, e.what() + hint_of(to));
  }
}

std::string data_plane::impl::hint_of(const peer_address& to) const {
  return hides(to, self.host) ? "; the peer is on another host and listens on loopback only: set "
                                "net.listen of the service or --listen of the worker to a "
                                "reachable address, or 0.0.0.0:0"
                              : "";
}

asio::awaitable<void> data_plane::impl::connect_in_process(side s, record_ptr r,
                                                           std::chrono::milliseconds timeout,
                                                           std::string why) {
  auto other = co_await meet(s.key, r->terms, timeout);
  auto terms = ring_terms_of(s.key, r->terms);
  terms.crc_every = 0;
  const auto back = make_in_process_channel(terms, other->terms.self, bell, bell);
  terms.peer = other->terms.peer;
  const auto forth = make_in_process_channel(terms, r->terms.self, bell, bell);
  bind({s.key, false}, other, {back.to, forth.from}, link_transport::in_process, why, [] {});
  bind(s, r, {forth.to, back.from}, link_transport::in_process, std::move(why),
       [other] { other->link->end(channel_state::closed); });
}

asio::awaitable<void> data_plane::impl::connect_shm(side s, record_ptr r,
                                                    std::chrono::milliseconds timeout,
                                                    const std::string& path, std::string why) {
  auto socket = std::make_shared<unix_socket>(io);
  time_limit limit{socket, timeout};
  try {
    co_await socket->async_connect(asio::local::stream_protocol::endpoint{path}, use_awaitable);
    if (!same_user(socket->native_handle()))
      throw std::runtime_error{"the peer at " + path + " runs as another user"};
    const auto h = hello_of(s.key, r->terms, link_transport::shm, options.cluster);
    // Before the conversation: the other side times our answer.
    auto segment = std::make_shared<shm_segment>(ring_terms_of(s.key, r->terms));
    auto met = co_await introduce(*socket, h, options.secret, r->round_trip);
    co_await socket->async_wait(unix_socket::wait_write, use_awaitable);
    const auto [word, waker] = bell->descriptors();
    const std::array<int, 3> descriptors{segment->descriptor(), word, waker};
    send_descriptors(socket->native_handle(), bytes_of(met.proof), descriptors);
    co_await socket->async_wait(unix_socket::wait_read, use_awaitable);
    verdict v;
    const auto got = receive_descriptors(socket->native_handle(), bytes_of(v));
    if (v.refused != 0) throw std::runtime_error{"the peer refused: " + text_of(v)};
    if (got.size() != 2) throw std::runtime_error{"the peer sent no doorbell"};
    auto their_bell = std::make_shared<gpu::doorbell>(std::array{got[0].get(), got[1].get()});
    limit.cancel();
    co_await finish_shm(s, r, socket, segment, their_bell, why);
  } catch (const boost::system::system_error&) {
    if (limit.over())
      throw std::runtime_error{"no answer on " + path + " within " + std::to_string(timeout.count())
                               + " ms"};
    throw;
  }
}

asio::awaitable<void> data_plane::impl::reach(std::shared_ptr<tcp_socket> socket,
                                              const std::string& where_to,
                                              std::chrono::milliseconds timeout) {
  const auto until = clock::now() + timeout;
  const auto where = parse_host_and_port(where_to);
  const auto answer = look_up(where->host, options.names);
  asio::steady_timer timer{io};
  while (answer.wait_for(std::chrono::seconds{0}) != std::future_status::ready) {
    if (clock::now() > until)
      throw lookup_timeout{where_to + ": name lookup timed out after "
                           + std::to_string(timeout.count()) + " ms"};
    timer.expires_after(poll_interval);
    co_await timer.async_wait(use_awaitable);
  }
  std::vector<asio::ip::tcp::endpoint> found;
  try {
    for (const auto& x : answer.get())
      found.emplace_back(asio::ip::make_address(x), static_cast<uint16_t>(where->port));
  } catch (const std::exception& e) {
    throw std::runtime_error{where_to + ": " + e.what()};
  }
  co_await asio::async_connect(*socket, found, use_awaitable);
  socket->set_option(asio::ip::tcp::no_delay{true});
}

asio::awaitable<void> data_plane::impl::connect_tcp(side s, record_ptr r,
                                                    std::chrono::milliseconds timeout,
                                                    const std::string& where_to, std::string why) {
  auto socket = std::make_shared<tcp_socket>(io);
  time_limit limit{socket, timeout};
  try {
    co_await reach(socket, where_to, timeout);
    const auto h = hello_of(s.key, r->terms, link_transport::tcp, options.cluster);
    const auto met = co_await introduce(*socket, h, options.secret, r->round_trip);
    co_await asio::async_write(*socket, asio::buffer(&met.proof, sizeof met.proof), use_awaitable);
    verdict v;
    co_await asio::async_read(*socket, asio::buffer(&v, sizeof v), use_awaitable);
    if (v.refused != 0) throw std::runtime_error{"the peer refused: " + text_of(v)};
    limit.cancel();
    finish_tcp(s, r, std::move(*socket), std::move(why));
  } catch (const boost::system::system_error& e) {
    throw std::runtime_error{limit.over() ? "no answer from " + where_to + " within "
                                                + std::to_string(timeout.count()) + " ms"
                                          : where_to + ": " + e.code().message()};
  }
}

/// Both sides of a shared memory link, once they agree. The socket stays open: when the other
/// process goes, however it goes, the socket tells; meanwhile it measures.
asio::awaitable<void> data_plane::impl::finish_shm(side s, record_ptr r,
                                                   std::shared_ptr<unix_socket> socket,
                                                   std::shared_ptr<shm_segment> segment,
                                                   std::shared_ptr<gpu::doorbell> their_bell,
                                                   std::string why) {
  auto memory = std::make_shared<std::pair<std::shared_ptr<shm_segment>, gpu::outside_channel>>(
      std::move(segment), bell);
  const auto terms = ring_terms_of(s.key, r->terms);
  auto* ours = s.connecting ? memory->first->forth() : memory->first->back();
  auto* theirs = s.connecting ? memory->first->back() : memory->first->forth();
  link_end real{std::make_shared<gpu::ring_sender>(
                    gpu::ring_place{ours, memory, bell, their_bell, terms}, r->terms.self),
                std::make_shared<gpu::ring_receiver>(
                    gpu::ring_place{theirs, memory, bell, their_bell, terms})};
  const bool up = bind(s, r, std::move(real), link_transport::shm, std::move(why), [socket] {
    error_code ignored;
    socket->close(ignored);
  });
  if (!up) co_return;
  co_await keep_measuring(socket, s.connecting, options.measure_every, r->trips);
  r->link->end(channel_state::closed);
}

void data_plane::impl::finish_tcp(const side& s, const record_ptr& r, tcp_socket socket,
                                  std::string why) {
  tcp_link::terms t;
  t.rings = ring_terms_of(s.key, r->terms);
  t.self = r->terms.self;
  t.bell = bell;
  t.unread = options.unread;
  t.measure_every = options.measure_every;
  t.trips = r->trips;
  t.on_end = [this, s, r](const std::string& text) {
    if (r->hang_up) { // not by end() on this side
      r->hang_up = nullptr;
      report(s, *r, link_event::kind::ended, text);
    }
    r->link->end(channel_state::closed);
  };
  auto link = std::make_shared<tcp_link>(std::move(socket), std::move(t));
  std::erase_if(tcp_links, [](const auto& weak) { return weak.expired(); });
  tcp_links.push_back(link);
  // A proper end lets out what was sent before it, so hanging up is left to the link itself.
  bind(s, r, link->start(), link_transport::tcp, std::move(why), [] {});
}

} // namespace lamella::net
