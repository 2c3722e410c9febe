/// Server-sent events: what we write, and a reader for what others write.
#pragma once

#include "net/http/http_exchange.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace lamella::net {

/// `data: <json>\n\n`. The JSON must not contain line breaks (json_writer makes none).
std::string sse_event(std::string_view json);
/// The same with a name before it: `event: <name>\n`.
std::string sse_event(std::string_view name, std::string_view json);
/// A comment that keeps proxies and read timeouts quiet.
inline constexpr std::string_view sse_ping = ": ping\n\n";
/// The end mark of a complete stream.
inline constexpr std::string_view sse_done = "data: [DONE]\n\n";
/// Content type, no caching, no proxy buffering.
http_headers sse_headers();

/// Cuts a byte stream into events, whatever the pieces it arrives in: CR, LF and CRLF end lines,
/// comments and other fields are skipped, several data lines are joined by LF, a byte order mark at
/// the start is dropped. An event not ended by an empty line is not delivered.
class sse_reader {
public:
  explicit sse_reader(std::function<void(std::string_view data)> on_event,
                      size_t event_bytes_max = size_t{16} << 20);

  /// Throws std::length_error when an event exceeds the maximum.
  void feed(std::string_view bytes);

private:
  void line();

  std::function<void(std::string_view)> on_event_;
  size_t event_bytes_max_;
  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool skip_lf_ = false;
  bool first_line_ = true;
};

} // namespace lamella::net
