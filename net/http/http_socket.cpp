#include "net/http/http_socket.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <new>

namespace lamella::net {

namespace asio = boost::asio;
namespace errc = boost::system::errc;

/// OpenSSL's own writes would raise SIGPIPE when the client is gone.
struct wire_bio {
  using wire = http_socket::wire;

  static int write(BIO* bio, const char* bytes, int count) {
    BIO_clear_retry_flags(bio);
    const auto& w = *static_cast<wire*>(BIO_get_data(bio));
    const auto sent = ::send(w.fd, bytes, static_cast<size_t>(count), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
      BIO_set_retry_write(bio);
    return static_cast<int>(sent);
  }

  static int read(BIO* bio, char* into, int room) {
    BIO_clear_retry_flags(bio);
    auto& w = *static_cast<wire*>(BIO_get_data(bio));
    const auto got = ::recv(w.fd, into, static_cast<size_t>(room), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
      BIO_set_retry_read(bio);
    if (got == 0) w.ended = true;
    return static_cast<int>(got);
  }

  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return static_cast<wire*>(BIO_get_data(bio))->ended ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static int create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }

  static BIO* make(wire& w) {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "http_socket");
      if (made == nullptr) throw std::bad_alloc{};
      BIO_meth_set_write(made, write);
      BIO_meth_set_read(made, read);
      BIO_meth_set_ctrl(made, control);
      BIO_meth_set_create(made, create);
      return made;
    }();
    BIO* bio = BIO_new(method);
    if (bio == nullptr) throw std::bad_alloc{};
    BIO_set_data(bio, &w);
    return bio;
  }
};

void http_socket::tls_free::operator()(ssl_st* x) const { SSL_free(x); }

http_socket::http_socket(tcp::socket socket, const tls_identity* identity)
    : socket_(std::move(socket)) {
  if (identity == nullptr) return;
  speak_tls(identity->context());
  SSL_set_accept_state(tls_.get());
}

http_socket::http_socket(tcp::socket socket, const tls_trust* trust, const std::string& host)
    : socket_(std::move(socket)) {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  if (trust == nullptr) return;
  speak_tls(trust->context());
  SSL_set_connect_state(tls_.get());
  // Without a name to compare with, any certificate of any authority would do.
  X509_VERIFY_PARAM* const expected = SSL_get0_param(tls_.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) == 1) return;
  if (SSL_set1_host(tls_.get(), host.c_str()) != 1
      || SSL_set_tlsext_host_name(tls_.get(), host.c_str()) != 1)
    broken_ = true;
}

void http_socket::speak_tls(ssl_ctx_st* context) {
  wire_ = std::make_unique<wire>();
  wire_->fd = socket_.native_handle();
  tls_.reset(SSL_new(context));
  if (!tls_) throw std::bad_alloc{};
  BIO* const bio = wire_bio::make(*wire_);
  SSL_set_bio(tls_.get(), bio, bio);
}

http_socket::~http_socket() = default;

http_socket::tcp::socket::wait_type http_socket::direction() const {
  return SSL_want_write(tls_.get()) ? tcp::socket::wait_write : tcp::socket::wait_read;
}

void http_socket::wait_readable(std::function<void(error_code)> then) {
  socket_.async_wait(read_waits_, std::move(then));
}

size_t http_socket::read_some(std::span<char> into, error_code& error) {
  if (!tls_) return socket_.read_some(asio::buffer(into.data(), into.size()), error);
  if (broken_) {
    error = asio::error::connection_reset;
    return 0;
  }
  ERR_clear_error();
  size_t count = 0;
  const int result = SSL_read_ex(tls_.get(), into.data(), into.size(), &count);
  error = result == 1 ? error_code{} : error_of(result);
  read_waits_ = error == asio::error::would_block ? direction() : tcp::socket::wait_read;
  if (error == errc::wrong_protocol_type) tls_.reset();
  if (error == asio::error::would_block && !shaken_ && SSL_is_init_finished(tls_.get()))
    handshake_done();
  return count;
}

size_t http_socket::try_write(std::string_view bytes, error_code& error) {
  if (!tls_) return socket_.write_some(asio::buffer(bytes.data(), bytes.size()), error);
  if (broken_) {
    error = asio::error::connection_reset;
    return 0;
  }
  ERR_clear_error();
  size_t count = 0;
  const int result = SSL_write_ex(tls_.get(), bytes.data(), bytes.size(), &count);
  error = result == 1 ? error_code{} : error_of(result);
  return count;
}

void http_socket::write_some(std::string_view bytes, std::function<void(error_code, size_t)> then) {
  if (!tls_) {
    socket_.async_write_some(asio::buffer(bytes.data(), bytes.size()), std::move(then));
    return;
  }
  error_code error;
  const size_t count = try_write(bytes, error);
  if (error != asio::error::would_block) {
    asio::post(socket_.get_executor(),
               [then = std::move(then), error, count] { then(error, count); });
    return;
  }
  socket_.async_wait(direction(), [this, bytes, then = std::move(then)](error_code failed) mutable {
    if (failed)
      then(failed, 0);
    else
      write_some(bytes, std::move(then));
  });
}

void http_socket::write_now(std::string_view bytes) {
  error_code error;
  // A record that is half written has to be written first, by who knows its bytes.
  if (try_write(bytes, error) != bytes.size() && tls_) broken_ = true;
}

http_socket::error_code http_socket::error_of(int result) {
  // SSL_get_error() takes OpenSSL's errors with it (net/http/tls_errors.hpp).
  const auto reason = ERR_GET_REASON(ERR_peek_error());
  switch (SSL_get_error(tls_.get(), result)) {
  case SSL_ERROR_WANT_READ:
  case SSL_ERROR_WANT_WRITE:
    return asio::error::would_block;
  case SSL_ERROR_ZERO_RETURN:
    return asio::error::eof;
  default:
    broken_ = true;
  }
  ERR_clear_error();
  if (reason == SSL_R_HTTP_REQUEST) return errc::make_error_code(errc::wrong_protocol_type);
  return asio::error::connection_reset;
}

void http_socket::handshake(std::function<void(const std::string&)> then) {
  ERR_clear_error();
  const int result = broken_ ? 0 : SSL_do_handshake(tls_.get());
  if (result == 1) return then({});
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  const auto error = error_of(result);
  if (!broken_ && error == asio::error::would_block) {
    socket_.async_wait(direction(), [this, then = std::move(then)](error_code failed) mutable {
      failed ? then(failed.message()) : handshake(std::move(then));
    });
    return;
  }
  const auto verified = SSL_get_verify_result(tls_.get());
  if (verified != X509_V_OK) return then(X509_verify_cert_error_string(verified));
  then(reason != nullptr ? reason : "the connection was closed");
}

void http_socket::handshake_done() {
  shaken_ = true;
  // No ticket follows that would carry the ACK of the client's last message. A client that does not
  // set TCP_NODELAY keeps its request back until it comes, which the kernel delays by 40 ms.
  const int on = 1;
  ::setsockopt(wire_->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

void http_socket::shut_send() {
  if (tls_ && !broken_ && SSL_is_init_finished(tls_.get())) {
    ERR_clear_error();
    SSL_shutdown(tls_.get()); // best effort: no room for it means that nobody reads
    ERR_clear_error();
  }
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

void http_socket::close() {
  error_code ignored;
  socket_.close(ignored);
  broken_ = true;
}

} // namespace lamella::net
