/// What Beast reads a client's answers from. Internal to net/http/client/http_client*.
#pragma once

#include "net/http/http_socket.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace lamella::net {

/// An AsyncReadStream and AsyncWriteStream in Asio's words.
class http_client_stream {
public:
  using tcp = boost::asio::ip::tcp;
  using error_code = boost::system::error_code;
  using executor_type = tcp::socket::executor_type;

  http_client_stream(tcp::socket socket, const tls_trust* trust, const std::string& host)
      : socket_(std::move(socket), trust, host) {}

  executor_type get_executor() { return socket_.get_executor(); }
  http_socket& socket() { return socket_; }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& into, Handler&& handler) {
    const boost::asio::mutable_buffer first = *boost::asio::buffer_sequence_begin(into);
    read({static_cast<char*>(first.data()), first.size()}, shared(std::forward<Handler>(handler)));
  }

  template <class Buffers, class Handler>
  void async_write_some(const Buffers& from, Handler&& handler) {
    const boost::asio::const_buffer first = *boost::asio::buffer_sequence_begin(from);
    socket_.write_some({static_cast<const char*>(first.data()), first.size()},
                       shared(std::forward<Handler>(handler)));
  }

private:
  using done = std::function<void(error_code, size_t)>;

  /// Asio's handlers can be moved only.
  template <class Handler> static done shared(Handler&& handler) {
    auto held = std::make_shared<std::decay_t<Handler>>(std::forward<Handler>(handler));
    return [held](error_code error, size_t count) { std::move (*held)(error, count); };
  }

  /// First what TLS has already, which no socket tells of.
  void read(std::span<char> into, done then) {
    error_code error;
    const size_t count = socket_.read_some(into, error);
    if (error != boost::asio::error::would_block) {
      boost::asio::post(get_executor(),
                        [then = std::move(then), error, count] { then(error, count); });
      return;
    }
    socket_.wait_readable([this, into, then = std::move(then)](error_code failed) mutable {
      failed ? then(failed, 0) : read(into, std::move(then));
    });
  }

  http_socket socket_;
};

} // namespace lamella::net
