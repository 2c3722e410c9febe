// Asking peers whether they can be reached, over connections of their own: one for each peer,
// beside the links and outliving their epochs. Only the plane's own thread takes part, so that an
// engine that is busy does not look like a cable that was pulled.
#include "net/data_plane/data_plane_impl.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace lamella::net {

using asio::use_awaitable;

namespace {

/// One question, and its answer.
constexpr uint64_t reach_word = 0x6c6d7265616368;

} // namespace

std::shared_ptr<const peer_reach> data_plane::impl::watch(peer_address to) {
  auto result = std::make_shared<peer_reach>();
  if (to.process == self.process)
    result->answered();
  else
    asio::post(io, [this, weak = std::weak_ptr{result}, to = std::move(to)] {
      if (!stopping) asio::co_spawn(io, keep_asking(weak, to), asio::detached);
    });
  return result;
}

/// The ways that links to the peer may take, one after the other: the next one after each failure.
asio::awaitable<void> data_plane::impl::keep_asking(std::weak_ptr<peer_reach> of, peer_address to) {
  const bool any = !forced;
  const bool by_file =
      !to.unix_path.empty() && to.host == self.host && (any || *forced == link_transport::shm);
  const bool by_tcp = !to.tcp.empty() && (any || *forced != link_transport::shm);
  bool file = by_file;
  asio::steady_timer pause{io};
  while (!of.expired() && !stopping) {
    std::string failed;
    try {
      if (isolated()) throw std::runtime_error{"isolated"};
      if (file) {
        auto socket = std::make_shared<unix_socket>(io);
        {
          time_limit limit{socket, options.asking.timeout};
          const asio::local::stream_protocol::endpoint where{to.unix_path};
          co_await socket->async_connect(where, use_awaitable);
          if (!same_user(socket->native_handle()))
            throw std::runtime_error{"it runs as another user"};
          co_await introduce_reach(socket);
        }
        co_await ask(of, socket);
      } else {
        auto socket = std::make_shared<tcp_socket>(io);
        {
          time_limit limit{socket, options.asking.timeout};
          const std::string where = reachable_tcp(to, options.home);
          co_await reach(socket, where, options.asking.timeout);
          co_await introduce_reach(socket);
        }
        co_await ask(of, socket);
      }
      failed = "the probe was cancelled";
    } catch (const std::exception& e) {
      failed = e.what();
    }
    note_failure(of, to, file ? link_transport::shm : link_transport::tcp, failed);
    if (by_file && by_tcp) file = !file;
    pause.expires_after(options.asking.again);
    co_await pause.async_wait(use_awaitable);
  }
}

/// The first one after an answer is told as well, as an event of no epoch.
void data_plane::impl::note_failure(const std::weak_ptr<peer_reach>& of, const peer_address& to,
                                    link_transport by, const std::string& reason) {
  const auto still = of.lock();
  if (!still) return;
  const auto now = peer_reach::clock::now();
  if (!still->failing(now) && options.on_event)
    options.on_event({still->answers() ? link_event::kind::ended : link_event::kind::refused,
                      {},
                      true,
                      by,
                      "no answer from " + (by == link_transport::shm ? to.unix_path : to.tcp) + ": "
                          + reason + hint_of(to)});
  still->failed(now);
}

template <class Socket>
asio::awaitable<void> data_plane::impl::introduce_reach(std::shared_ptr<Socket> socket) {
  const auto h = hello_to_ask(options.cluster);
  std::chrono::nanoseconds took{0};
  const auto met = co_await introduce(*socket, h, options.secret, took);
  co_await asio::async_write(*socket, asio::buffer(&met.proof, sizeof met.proof), use_awaitable);
}

/// Until an answer does not come in time, or nobody wants to know any more.
template <class Socket>
asio::awaitable<void> data_plane::impl::ask(std::weak_ptr<peer_reach> of,
                                            std::shared_ptr<Socket> socket) {
  asio::steady_timer pause{io};
  while (!of.expired() && !isolated()) {
    {
      time_limit limit{socket, options.asking.timeout};
      uint64_t word = reach_word;
      co_await asio::async_write(*socket, asio::buffer(&word, sizeof word), use_awaitable);
      co_await asio::async_read(*socket, asio::buffer(&word, sizeof word), use_awaitable);
      if (word != reach_word) throw std::runtime_error{"an unexpected reply"};
    }
    if (const auto still = of.lock()) still->answered();
    pause.expires_after(options.asking.every);
    co_await pause.async_wait(use_awaitable);
  }
}

/// The other side: says each word again. Who has said nothing for so long has gone.
template <class Socket>
asio::awaitable<void> data_plane::impl::answer_reach(std::shared_ptr<Socket> socket) {
  while (!isolated()) {
    uint64_t word = 0;
    time_limit limit{socket, options.handshake};
    co_await asio::async_read(*socket, asio::buffer(&word, sizeof word), use_awaitable);
    if (!isolated())
      co_await asio::async_write(*socket, asio::buffer(&word, sizeof word), use_awaitable);
  }
}

template asio::awaitable<void>
    data_plane::impl::answer_reach(std::shared_ptr<data_plane::impl::unix_socket>);
template asio::awaitable<void>
    data_plane::impl::answer_reach(std::shared_ptr<data_plane::impl::tcp_socket>);

void data_plane::isolate(std::chrono::milliseconds how_long) {
  impl_->isolated_until = impl::clock::now() + how_long;
}

std::shared_ptr<const peer_reach> data_plane::watch(const std::string& address) {
  auto to = parse_peer_address(address);
  if (!to) throw std::invalid_argument{"not an address of a data plane: " + address};
  return impl_->watch(std::move(*to));
}

} // namespace lamella::net
