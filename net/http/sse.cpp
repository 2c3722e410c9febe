#include "net/http/sse.hpp"

#include <stdexcept>

namespace lamella::net {

std::string sse_event(std::string_view json) {
  std::string event;
  event.reserve(json.size() + 8);
  event.append("data: ").append(json).append("\n\n");
  return event;
}

std::string sse_event(std::string_view name, std::string_view json) {
  std::string event;
  event.reserve(name.size() + json.size() + 16);
  event.append("event: ").append(name).append("\ndata: ").append(json).append("\n\n");
  return event;
}

http_headers sse_headers() {
  return {{"content-type", "text/event-stream; charset=utf-8"},
          {"cache-control", "no-cache, no-transform"},
          {"x-accel-buffering", "no"}};
}

sse_reader::sse_reader(std::function<void(std::string_view)> on_event, size_t event_bytes_max)
    : on_event_(std::move(on_event)), event_bytes_max_(event_bytes_max) {}

void sse_reader::feed(std::string_view bytes) {
  for (const char c : bytes) {
    if (skip_lf_) {
      skip_lf_ = false;
      if (c == '\n') continue;
    }
    if (c == '\n' || c == '\r') {
      skip_lf_ = c == '\r';
      line();
      line_.clear();
      continue;
    }
    if (line_.size() + data_.size() >= event_bytes_max_)
      throw std::length_error("a server-sent event is longer than "
                              + std::to_string(event_bytes_max_) + " bytes");
    line_ += c;
  }
}

void sse_reader::line() {
  std::string_view text = line_;
  if (first_line_) {
    first_line_ = false;
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  }
  if (text.empty()) {
    if (has_data_) {
      // The callback may throw or feed nothing more; leave a clean state behind either way.
      const std::string data = std::move(data_);
      data_.clear();
      has_data_ = false;
      on_event_(data);
    }
    return;
  }
  const size_t colon = text.find(':');
  if (text.substr(0, colon) != "data") return;
  std::string_view value =
      colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

} // namespace lamella::net
