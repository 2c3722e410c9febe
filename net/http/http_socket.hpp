/// A connection of a server or a client: TCP, or TLS on it. Internal to net/http_*.
#pragma once

#include "net/http/tls_identity.hpp"
#include "net/http/tls_trust.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct ssl_st;

namespace lamella::net {

/// All members run on the socket's strand. Nothing blocks. A handshake is part of the first read
/// or write, under the deadlines of those. Reading looks no further than the record that it
/// returns: bytes that were not read are the socket's, which therefore stays readable.
class http_socket {
public:
  using tcp = boost::asio::ip::tcp;
  using error_code = boost::system::error_code;

  /// A server's. Speaks TLS with an identity, plain HTTP without one. Throws std::bad_alloc.
  http_socket(tcp::socket socket, const tls_identity* identity);
  /// A client's, to a host of that name or address. Plain HTTP without trust.
  http_socket(tcp::socket socket, const tls_trust* trust, const std::string& host);
  ~http_socket();

  /// A client's first step with TLS. Tells why it failed, or nothing.
  void handshake(std::function<void(const std::string& why)> then);

  auto get_executor() { return socket_.get_executor(); }
  tcp::endpoint remote_endpoint(error_code& error) const { return socket_.remote_endpoint(error); }

  /// Calls back when read_some() may succeed.
  void wait_readable(std::function<void(error_code)> then);

  /// would_block: nothing has come. eof: the other side sends no more. wrong_protocol_type: a
  /// client spoke plain HTTP to TLS; the connection is plain from then on, and what it sent lost.
  size_t read_some(std::span<char> into, error_code& error);

  /// At least one byte, or an error; never calls back before it returns. One at a time, and `bytes`
  /// stay until then.
  void write_some(std::string_view bytes, std::function<void(error_code, size_t)> then);

  /// A few bytes, while nothing else is being written. Where there is no room for them they are
  /// lost, and with TLS so is the connection.
  void write_now(std::string_view bytes);

  /// Shuts down sending.
  void shut_send();

  void close();

private:
  struct tls_free {
    void operator()(ssl_st* x) const;
  };
  /// What OpenSSL reads from and writes to.
  struct wire {
    int fd = -1;
    bool ended = false; ///< no byte will come
  };
  friend struct wire_bio;

  void speak_tls(ssl_ctx_st* context);
  size_t try_write(std::string_view bytes, error_code& error);
  error_code error_of(int result);
  void handshake_done();
  tcp::socket::wait_type direction() const; ///< that the last call of OpenSSL waits for

  tcp::socket socket_;
  std::unique_ptr<wire> wire_;
  std::unique_ptr<ssl_st, tls_free> tls_;
  tcp::socket::wait_type read_waits_ = tcp::socket::wait_read;
  bool shaken_ = false; ///< the handshake is over
  bool broken_ = false; ///< TLS ended with an error: it has nothing more to say
};

} // namespace lamella::net
