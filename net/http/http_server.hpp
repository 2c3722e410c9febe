/// An HTTP/1.1 server for hostile networks: strict framing, bounded everything, streams.
#pragma once

#include "net/http/http_exchange.hpp"
#include "net/http/http_settings.hpp"
#include "net/http/tls_identity.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

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
  uint64_t stalls = 0;              ///< of these, clients that read nothing or too slowly
  uint64_t answers_refused = 0;     ///< whole answers that became a 503, for lack of memory
  size_t connections_open = 0;
  size_t exchanges_open = 0; ///< requests being answered
  size_t answer_bytes = 0;   ///< of whole answers that wait for their readers
};

/// Accepts on its own I/O threads. Pipelined requests are not served: bytes that come before the
/// answer is complete end the connection after that answer.
class http_server {
public:
  using settings = http_settings;

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

  /// Closes the listening sockets, or that of one listener; open connections get `connection:
  /// close` with their next answer.
  void stop_accepting();
  void stop_accepting(std::string_view listener);

  /// Closes connections that are between two requests.
  void close_idle();

  /// Waits until all answers of a listener are written, or their clients are gone; false when the
  /// deadline passed before. Not from an I/O thread.
  bool wait_answers(std::string_view listener, std::chrono::steady_clock::time_point deadline);

  /// stop_accepting() and close_idle(), waits up to `deadline` for open exchanges, then cuts the
  /// rest and joins the threads. True when none had to be cut. Not from an I/O thread.
  bool stop(std::chrono::milliseconds deadline);

  /// Sets the handler timeout for requests handed over from now on; earlier requests keep theirs.
  /// Thread-safe.
  void set_answer_time(std::chrono::milliseconds limit);

  http_counters counters() const;

  /// Reads counters(), on any thread, also when the server is gone.
  std::function<http_counters()> counter() const;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace lamella::net
