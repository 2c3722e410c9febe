/// One HTTP request and the way to answer it, as a handler sees them: no sockets.
#pragma once

#include "base/byte_budget.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

struct http_header {
  std::string name;
  std::string value;
};

/// Header fields in the order of the message; names compare without case.
class http_headers {
public:
  http_headers() = default;
  http_headers(std::initializer_list<http_header> fields) : fields_(fields) {}

  void add(std::string name, std::string value);
  /// Replaces all fields of that name.
  void set(std::string name, std::string value);
  /// The first field of that name; null when there is none.
  const std::string* find(std::string_view name) const;
  std::string_view get(std::string_view name, std::string_view otherwise = {}) const;
  /// How many fields have that name.
  size_t count(std::string_view name) const;

  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  size_t size() const { return fields_.size(); }

private:
  std::vector<http_header> fields_;
};

/// Of an answer whose body is JSON.
inline const http_headers json_content{{"content-type", "application/json"}};

/// A complete request: the body is all there and within the limits.
struct http_request {
  std::string method; ///< "GET", "POST", ... never CONNECT or TRACE
  std::string path;   ///< as sent, still percent-encoded, starts with '/' (or is "*")
  std::string query;  ///< as sent, without the '?'
  http_headers headers;
  std::string body;
  byte_budget::share body_share; ///< of the memory for bodies
  std::string remote_address;    ///< without the port
  std::string listener;          ///< name of the listener it came in by
  std::string request_id;        ///< the client's X-Request-Id when it is fit to print, else ours
  std::chrono::steady_clock::time_point connected; ///< when the connection was accepted
  std::chrono::steady_clock::time_point arrived;   ///< first byte of this request
};

/// The body of a request; its part of the memory for bodies is given back with it.
struct http_body {
  std::string text;
  byte_budget::share share;
};

/// A request and its answer. Everything may be called from any thread and returns at once;
/// callbacks run on an I/O thread of the server and must not block.
///
/// Answer exactly once: respond(), or start_stream() ... write() ... finish(). Dropping the last
/// pointer without an answer sends 500; dropping it inside a stream cuts the connection.
///
/// The server itself adds `content-length`, `connection`, `date`, `x-request-id` and
/// `x-lamella-version` to every answer, and `request-id` where the path is one of Anthropic's API.
class http_exchange {
public:
  virtual ~http_exchange() = default;

  virtual const http_request& request() const = 0;

  /// Takes the body out of the request, so that its memory lasts no longer than its reader needs
  /// it. At most once, and by the only thread that looks at the body from then on.
  virtual http_body take_body() = 0;

  /// The whole answer. For HEAD the body is counted, but not sent.
  virtual void respond(int status, http_headers headers, std::string body) = 0;

  /// Sends status 200 and the headers and opens a chunked body.
  virtual void start_stream(http_headers headers) = 0;

  /// One piece of the stream. `written(true)` is called when the socket has taken all of it: only
  /// then render the next piece, so that a reader that stops costs one piece of memory. At most one
  /// write may be outstanding (std::logic_error otherwise). `written(false)`: the client is gone;
  /// on_closed is or was called as well. An empty chunk writes nothing and calls back.
  virtual void write(std::string chunk, std::function<void(bool ok)> written) = 0;

  /// Ends the stream properly. `close` also ends the connection afterwards (after an error event).
  virtual void finish(bool close = false) = 0;

  /// Calls `closed` once if the connection ends before the answer is complete: the client closed or
  /// reset it, stopped reading for the stall limit, or the server was stopped. Not called after a
  /// complete answer. When that has happened already, `closed` is called soon.
  virtual void on_closed(std::function<void()> closed) = 0;

  /// False once the connection has ended.
  virtual bool open() const = 0;
};

using http_exchange_ptr = std::shared_ptr<http_exchange>;

/// Takes a request; called on an I/O thread, must return quickly (hand the pointer to an actor). An
/// exception that leaves it is answered with 500.
using http_handler = std::function<void(http_exchange_ptr)>;

} // namespace lamella::net
