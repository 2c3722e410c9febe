/// An HTTP/1.1 client for our own tools: JSON calls and event streams, one or thousands at once.
#pragma once

#include "net/http/http_exchange.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lamella::net {

/// `http://host[:port][/prefix]`, or https://.
struct http_url {
  std::string host; ///< name, IPv4, or IPv6 without brackets
  uint16_t port = 80;
  std::string prefix; ///< path before all routes, without a trailing slash
  bool tls = false;   ///< https: by who the system trusts (net/http/tls_trust.hpp)
};

/// Throws std::invalid_argument naming the text for anything else.
http_url parse_http_url(std::string_view text);

/// The call did not get a complete answer: no connection, a timeout, a cut, or broken framing.
struct http_call_error : std::runtime_error {
  enum class reason : uint8_t { resolve, connect, trust, timeout, cut, protocol, aborted };
  http_call_error(reason r, const std::string& what) : std::runtime_error(what), why(r) {}
  reason why;
};

struct http_call_request {
  std::string method = "GET";
  std::string path = "/"; ///< appended to the prefix of the URL
  http_headers headers;   ///< host, content-length and accept are added
  std::string body;       ///< sent as application/json unless headers say otherwise
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds idle_timeout{60'000}; ///< longest silence; pings count as noise
  std::chrono::milliseconds total_timeout{900'000};
  size_t body_bytes_max = size_t{64} << 20; ///< of a body that is kept
};

struct http_reply {
  int status = 0;
  http_headers headers;
  std::string body; ///< empty where on_data took it
};

/// Callbacks of an asynchronous call, all on the thread that runs the loop. Exactly one of on_done
/// and on_error comes, last, unless the loop is destroyed before.
struct http_call_events {
  std::function<void()> on_sent; ///< the request is on its way
  std::function<void(int status, const http_headers&)> on_head;
  std::function<void(std::string_view bytes)> on_data; ///< if set, takes 2xx bodies piece by piece
  std::function<void(const http_reply&)> on_done;
  std::function<void(const http_call_error&)> on_error;
};

/// A running call. Dropping the handle does not end the call.
class http_call {
public:
  virtual ~http_call() = default;
  /// Cuts the connection; on_error(aborted) follows. From any thread.
  virtual void abort() = 0;
};

/// Many calls on one thread: the engine of the load generator.
class http_client_loop {
public:
  http_client_loop();
  ~http_client_loop();
  http_client_loop(const http_client_loop&) = delete;
  http_client_loop& operator=(const http_client_loop&) = delete;

  /// Starts a call on a connection of its own, which ends with it. From the loop's thread, or
  /// before run().
  std::shared_ptr<http_call> call(const http_url& url, http_call_request request,
                                  http_call_events events);

  /// Calls f on the loop's thread at that time. From the loop's thread, or before run().
  void at(std::chrono::steady_clock::time_point time, std::function<void()> f);

  /// Runs until no call and no timer is left, or stop().
  void run();
  /// From any thread.
  void stop();

private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

/// One call at a time, blocking, for commands. abort() may come from another thread or a signal
/// watcher and makes the running call throw http_call_error(aborted).
class http_client {
public:
  /// `api_key` is sent as a bearer token unless empty.
  explicit http_client(http_url url, std::string api_key = {});
  ~http_client();

  /// Whatever the status; throws http_call_error.
  http_reply call(http_call_request request);
  http_reply get(const std::string& path, std::chrono::milliseconds timeout);
  http_reply post(const std::string& path, std::string json, std::chrono::milliseconds timeout);

  /// Posts and hands each event's data (without "[DONE]") to on_event, which returns false to stop
  /// early. Where the status is not 2xx the reply holds the body. Throws http_call_error(cut) when
  /// a 2xx stream ends without "[DONE]" and was not stopped.
  http_reply stream(const std::string& path, std::string json,
                    const std::function<bool(std::string_view data)>& on_event,
                    std::chrono::milliseconds idle_timeout);

  void abort();

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace lamella::net
