#include "net/http/http_framing.hpp"

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include <algorithm>
#include <charconv>

namespace lamella::net {

namespace {

namespace http = boost::beast::http;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool equals(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return lower(x) == lower(y);
         });
}

/// One of the comma-separated words of the Connection fields.
bool has_token(const http_headers& headers, std::string_view name, std::string_view token) {
  for (const auto& [field, value] : headers) {
    if (!equals(field, name)) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      std::string_view word = rest.substr(0, comma);
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
      while (!word.empty() && (word.front() == ' ' || word.front() == '\t')) word.remove_prefix(1);
      while (!word.empty() && (word.back() == ' ' || word.back() == '\t')) word.remove_suffix(1);
      if (equals(word, token)) return true;
    }
  }
  return false;
}

api_error refusal(int status, std::string code, std::string message) {
  api_error error = bad_request(std::move(message));
  error.status = status;
  error.code = std::move(code);
  return error;
}

api_error head_too_large(const std::string& what, size_t limit) {
  return refusal(431, "", what + " exceed the limit of " + std::to_string(limit));
}

void check_body_framing(request_head& head) {
  const size_t codings = head.headers.count("transfer-encoding");
  const size_t lengths = head.headers.count("content-length");
  if (codings) {
    if (lengths) throw bad_request("Transfer-Encoding and Content-Length exclude each other");
    if (head.http_1_0) throw bad_request("Transfer-Encoding is not part of HTTP/1.0");
    if (codings > 1 || !equals(head.headers.get("transfer-encoding"), "chunked"))
      throw bad_request("the only supported Transfer-Encoding is \"chunked\"");
    head.chunked = true;
  }
  if (lengths > 1) throw bad_request("more than one Content-Length");
  if (lengths == 1) {
    const std::string_view value = head.headers.get("content-length");
    const auto [end, ec] =
        std::from_chars(value.data(), value.data() + value.size(), head.content_length);
    const bool digits =
        std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || ec != std::errc{} || end != value.data() + value.size())
      throw bad_request("Content-Length is not one decimal number");
  }
}

void check_host(const request_head& head) {
  const size_t hosts = head.headers.count("host");
  if (hosts > 1) throw bad_request("more than one Host");
  if (hosts == 0 && !head.http_1_0) throw bad_request("Host is missing");
  for (const char c : head.headers.get("host")) {
    const bool plain = (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z');
    if (!plain && std::string_view("-._~:[]%!$&'()*+;=").find(c) == std::string_view::npos)
      throw bad_request("Host has a character not allowed in host names");
  }
}

void split_target(std::string_view target, request_head& head) {
  for (const char c : target)
    if (c <= 0x20 || c >= 0x7F)
      throw bad_request("the request target has control or non-ASCII characters");
  if (target.find('#') != std::string_view::npos)
    throw bad_request("the request target has a fragment");
  if (target.size() > 7 && equals(target.substr(0, 7), "http://")) { // absolute form, for proxies
    const size_t slash = target.find_first_of("/?", 7);
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  if (target == "*" && head.method == "OPTIONS") {
    head.path = "*";
    return;
  }
  if (target.empty() || target.front() != '/')
    throw bad_request("the request target is not a path");
  const size_t mark = target.find('?');
  head.path = target.substr(0, mark);
  if (mark != std::string_view::npos) head.query = target.substr(mark + 1);
}

} // namespace

std::optional<size_t> head_scanner::scan(std::string_view buffer) {
  for (; at_ < buffer.size(); ++at_) {
    const auto c = static_cast<unsigned char>(buffer[at_]);
    if (at_ >= limits_.header_bytes)
      throw head_too_large("the bytes of request line and headers", limits_.header_bytes);
    const size_t line_limit = lines_ == 0 ? limits_.request_line_bytes : limits_.header_line_bytes;
    if (at_ - line_start_ > line_limit + 1) {
      if (lines_ == 0)
        throw refusal(414, "",
                      "the request line is longer than " + std::to_string(line_limit) + " bytes");
      throw head_too_large("the bytes of one header", line_limit);
    }
    const bool after_cr = at_ > line_start_ && buffer[at_ - 1] == '\r';
    if (after_cr != (c == '\n')) throw bad_request("lines must end in CR LF");
    if (c == '\n') {
      const size_t length = at_ - 1 - line_start_;
      if (length == 0) return at_ + 1;
      if (lines_++ > limits_.header_count)
        throw head_too_large("the number of headers", limits_.header_count);
      line_start_ = at_ + 1;
      continue;
    }
    if (at_ == line_start_ && lines_ > 0 && (c == ' ' || c == '\t'))
      throw bad_request("a header line is folded");
    if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7F)
      throw bad_request("control character in the request head");
  }
  return std::nullopt;
}

request_head parse_head(std::string_view text, const http_limits& limits) {
  http::parser<true, http::empty_body> parser;
  parser.header_limit(static_cast<uint32_t>(
      std::min<size_t>(limits.header_bytes + 2, std::numeric_limits<uint32_t>::max())));
  parser.body_limit(boost::none);
  parser.eager(false);
  boost::beast::error_code ec;
  parser.put(boost::asio::const_buffer(text.data(), text.size()), ec);
  if (ec || !parser.is_header_done())
    throw bad_request("not a valid HTTP request: " + (ec ? ec.message() : "incomplete head"));

  request_head head;
  const auto& message = parser.get();
  head.method = std::string(message.method_string());
  head.http_1_0 = message.version() == 10;
  for (const auto& field : message)
    head.headers.add(std::string(field.name_string()), std::string(field.value()));
  if (head.method == "CONNECT" || head.method == "TRACE")
    throw method_not_allowed(head.method, "GET, HEAD, POST, OPTIONS");
  split_target({message.target().data(), message.target().size()}, head);
  check_host(head);
  check_body_framing(head);
  if (const std::string* expect = head.headers.find("expect")) {
    if (head.headers.count("expect") > 1 || !equals(*expect, "100-continue"))
      throw bad_request("the only supported Expect is \"100-continue\"");
    head.expect_continue = !head.http_1_0;
  }
  head.keep_alive = head.http_1_0 ? has_token(head.headers, "connection", "keep-alive")
                                  : !has_token(head.headers, "connection", "close");
  return head;
}

void check_length(const request_head& head, const http_limits& limits) {
  if (head.content_length > limits.body_bytes) throw body_too_large(limits.body_bytes);
}

namespace {

void expect(char seen, char wanted) {
  if (seen != wanted) throw bad_request("broken chunk framing");
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; }

bool is_name_character(char c) {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z')
         || (c != 0 && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

} // namespace

void chunk_decoder::take_size(char c, size_t body_bytes) {
  const char l = lower(c);
  const int digit = c >= '0' && c <= '9' ? c - '0' : l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
  if (digit < 0) {
    if (digits_ == 0) throw bad_request("a chunk without a size");
    take_extension(c);
    return;
  }
  if (++digits_ > 8) throw bad_request("a chunk size has more than 8 digits");
  remaining_ = remaining_ * 16 + static_cast<uint64_t>(digit);
  if (remaining_ > limits_.body_bytes || body_bytes + remaining_ > limits_.body_bytes)
    throw body_too_large(limits_.body_bytes);
}

void chunk_decoder::take_extension(char c) {
  if (c == '\r' && state_ != state::blank) {
    state_ = state::size_lf;
    return;
  }
  if (++passed_ > extension_bytes)
    throw bad_request("a chunk has more than " + std::to_string(extension_bytes)
                      + " bytes of extensions");
  if (state_ == state::extension) {
    if (is_control(c)) throw bad_request("control character in a chunk extension");
    return;
  }
  if (c != ';' && !is_blank(c)) throw bad_request("broken chunk framing: a size is not a number");
  state_ = c == ';' ? state::extension : state::blank;
}

void chunk_decoder::take_trailer(char c) {
  if (state_ == state::end && c == '\r') {
    state_ = state::end_lf;
    return;
  }
  if (++passed_ > trailer_bytes)
    throw bad_request("there are more than " + std::to_string(trailer_bytes)
                      + " bytes of trailers");
  if (state_ == state::value_lf) {
    expect(c, '\n');
    state_ = state::end;
  } else if (state_ == state::value) {
    if (c == '\r')
      state_ = state::value_lf;
    else if (is_control(c))
      throw bad_request("control character in a trailer");
  } else if (state_ == state::name && c == ':') {
    state_ = state::value;
  } else {
    if (!is_name_character(c)) throw bad_request("a trailer is not a header field");
    state_ = state::name;
  }
}

void chunk_decoder::take(char c, size_t body_bytes) {
  switch (state_) {
  case state::size_first:
    if (++chunks_ > limits_.chunks)
      throw bad_request("more than " + std::to_string(limits_.chunks) + " chunks");
    remaining_ = 0;
    digits_ = 0;
    passed_ = 0;
    state_ = state::size;
    [[fallthrough]];
  case state::size:
    return take_size(c, body_bytes);
  case state::blank:
  case state::extension:
    return take_extension(c);
  case state::size_lf:
    expect(c, '\n');
    passed_ = 0;
    state_ = remaining_ ? state::data : state::end;
    return;
  case state::data_cr:
    expect(c, '\r');
    state_ = state::data_lf;
    return;
  case state::data_lf:
    expect(c, '\n');
    state_ = state::size_first;
    return;
  case state::end:
  case state::name:
  case state::value:
  case state::value_lf:
    return take_trailer(c);
  case state::end_lf:
    expect(c, '\n');
    state_ = state::done;
    return;
  case state::data: // taken as a whole
  case state::done:
    return;
  }
}

size_t chunk_decoder::feed(std::string_view bytes, std::string& body) {
  size_t at = 0;
  while (at < bytes.size() && state_ != state::done) {
    if (state_ != state::data) {
      take(bytes[at++], body.size());
      continue;
    }
    const size_t some = std::min<uint64_t>(remaining_, bytes.size() - at);
    body.append(bytes, at, some);
    remaining_ -= some;
    at += some;
    if (remaining_ == 0) state_ = state::data_cr;
  }
  return at;
}

std::string response_head_text(int status, const http_headers& headers) {
  const auto reason = http::obsolete_reason(static_cast<http::status>(status));
  std::string text = "HTTP/1.1 " + std::to_string(status) + " ";
  text.append(reason.data(), reason.size());
  text += "\r\n";
  for (const auto& [name, value] : headers) {
    text += name;
    text += ": ";
    for (const char c : value) text += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    text += "\r\n";
  }
  text += "\r\n";
  return text;
}

} // namespace lamella::net
