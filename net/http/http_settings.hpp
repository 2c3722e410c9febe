/// Limits and addresses of an HTTP server.
#pragma once

#include "net/http/cors_policy.hpp"
#include "net/http/http_exchange.hpp"
#include "net/http/tls_identity.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lamella::net {

/// Limits of one connection, and of how many there are. All are upper bounds except
/// body_bytes_per_second and answer_bytes_per_second.
struct http_limits {
  using milliseconds = std::chrono::milliseconds;

  size_t connections = 12'000;            ///< of each listener; beyond: 503 and close
  size_t connections_per_address = 512;   ///< of each listener; beyond: 429 and close
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
  milliseconds stall_time{60'000}; ///< no byte taken by the socket while something is to write
  /// On average, of a whole answer that the socket takes, after answer_rate_after; below: cut.
  size_t answer_bytes_per_second = 16 << 10;
  milliseconds answer_rate_after{60'000};
  milliseconds answer_time{900'000}; ///< silence of the handler, before and inside an answer
  milliseconds half_close_time{500}; ///< a client that closed its sending side may still get an
                                     ///< answer for so long, then it counts as gone
  milliseconds linger_time{2'000};   ///< reading and dropping after a refusal, so that it arrives
  size_t linger_bytes = size_t{16} << 20;
  size_t stream_buffer_bytes = size_t{1}
                               << 20; ///< one write() of a stream; beyond: std::length_error
};

/// Memory that the requests of one listener take. Each listener has its own, so that neither large
/// bodies nor slow readers of the public one have operators and probes refused on the admin one.
struct http_memory {
  explicit http_memory(size_t limit = size_t{256} << 20)
      : bodies(std::make_shared<byte_budget>(limit)),
        answers(std::make_shared<byte_budget>(limit)) {}

  /// Sets both limits from now on. Thread-safe.
  void set_limit(size_t bytes) const {
    bodies->set_limit(bytes);
    answers->set_limit(bytes);
  }

  std::shared_ptr<byte_budget> bodies; ///< received or being received; beyond: 503
  /// Whole answers that wait for their readers, but for short ones; beyond: 503 instead of the
  /// answer.
  std::shared_ptr<byte_budget> answers;
};

/// One address to listen on, and its handler.
struct http_listener {
  std::string name;                  ///< "public", "admin": becomes http_request::listener
  std::string address = "127.0.0.1"; ///< numeric IPv4 or IPv6, or "localhost"
  uint16_t port = 0;                 ///< 0: any free one
  http_handler handler;
  cors_policy pages{};                            ///< web pages that may read the answers
  std::shared_ptr<const tls_identity> identity{}; ///< speaks HTTPS with one, else plain HTTP
  http_memory memory{};
};

/// Settings of a server, over all its listeners.
struct http_settings {
  http_limits limits;
  unsigned threads = 1;      ///< 1..64
  std::string version = "0"; ///< x-lamella-version
};

} // namespace lamella::net
