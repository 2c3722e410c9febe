/// An HTTP/1.1 server for hostile networks: strict framing, bounded everything, streams.
#pragma once

#include "net/http/cors_policy.hpp"
#include "net/http/http_exchange.hpp"
#include "net/http/tls_identity.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace lamella::net {

/// Limits of one connection. All are upper bounds except body_bytes_per_second.
struct http_limits {
  using milliseconds = std::chrono::milliseconds;

  size_t connections = 12'000;            ///< over all listeners; beyond: 503 and close
  size_t connections_per_address = 512;   ///< beyond: 429 and close
  size_t request_line_bytes = 8 << 10;    ///< beyond: 414
  size_t header_line_bytes = 8 << 10;     ///< beyond: 431
  size_t header_bytes = 16 << 10;         ///< request line and all fields; beyond: 431
  size_t header_count = 100;              ///< beyond: 431
  milliseconds header_time{10'000};       ///< first byte (or accept) to the empty line; beyond: 408
  size_t body_bytes = size_t{16} << 20;   ///< beyond: 413, before reading when the length is given
  milliseconds body_time{30'000};         ///< beyond: 408
  size_t body_bytes_per_second = 1 << 10; ///< on average, after body_rate_after; below: 408
  milliseconds body_rate_after{5'000};
  size_t chunks = 4'096;                  ///< of a chunked body; beyond: 400
  size_t requests_per_connection = 1'000; ///< then `connection: close`
  milliseconds idle_time{60'000};         ///< between requests
  milliseconds stall_time{60'000};   ///< no byte taken by the socket while something is to write
  milliseconds answer_time{900'000}; ///< silence of the handler, before and inside an answer
  milliseconds half_close_time{500}; ///< a client that closed its sending side may still get an
                                     ///< answer for so long, then it counts as gone
  milliseconds linger_time{2'000};   ///< reading and dropping after a refusal, so that it arrives
  size_t linger_bytes = size_t{16} << 20;
  size_t stream_buffer_bytes = size_t{1}
                               << 20; ///< one write() of a stream; beyond: std::length_error
};

/// One address to listen on, and its handler.
struct http_listener {
  std::string name;                  ///< "public", "admin": becomes http_request::listener
  std::string address = "127.0.0.1"; ///< numeric IPv4 or IPv6, or "localhost"
  uint16_t port = 0;                 ///< 0: any free one
  http_handler handler;
  cors_policy pages{};                            ///< web pages that may read the answers
  std::shared_ptr<const tls_identity> identity{}; ///< speaks HTTPS with one, else plain HTTP
};

/// The address cannot be listened on; what() has the address and the reason.
struct http_listen_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Counts since the start, and what is open now.
struct http_counters {
  uint64_t connections_accepted = 0;
  uint64_t connections_refused = 0; ///< over the limits
  uint64_t requests = 0;            ///< handed to a handler
  uint64_t refused = 0;             ///< answered by the server itself: framing, limits, timeouts
  uint64_t disconnects = 0;         ///< connection ended before its answer was complete
  uint64_t stalls = 0;              ///< of these, clients that read nothing for stall_time
  size_t connections_open = 0;
  size_t exchanges_open = 0; ///< requests being answered
};

/// Accepts on its own I/O threads. Pipelined requests are not served: bytes that come before the
/// answer is complete end the connection after that answer.
class http_server {
public:
  struct settings {
    http_limits limits;
    unsigned threads = 1;      ///< 1..64
    std::string version = "0"; ///< x-lamella-version
    /// Memory of all requests' bodies, received or being received; beyond: 503.
    std::shared_ptr<byte_budget> bodies = std::make_shared<byte_budget>(size_t{256} << 20);
  };

  http_server(settings, std::vector<http_listener>);
  /// Stops at once when still running.
  ~http_server();
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  /// Listens on all addresses, then starts the threads. Throws http_listen_error and listens on
  /// none when one of them fails.
  void start();

  /// Replaces the identity of an HTTPS listener, from the next connection on. Thread-safe.
  void set_identity(std::string_view listener, std::shared_ptr<const tls_identity> identity);

  /// The port of a listener; valid after start().
  uint16_t port(std::string_view listener) const;

  /// Closes the listening sockets; open connections get `connection: close` with their next answer.
  void stop_accepting();

  /// Closes connections that are between two requests.
  void close_idle();

  /// stop_accepting() and close_idle(), waits up to `deadline` for open exchanges, then cuts the
  /// rest and joins the threads. True when none had to be cut. Not from an I/O thread.
  bool stop(std::chrono::milliseconds deadline);

  /// Sets the handler timeout for requests handed over from now on; earlier requests keep theirs.
  /// Thread-safe.
  void set_answer_time(std::chrono::milliseconds limit);

  http_counters counters() const;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace lamella::net
