// The reading half of a session: bytes in, requests to the handler.
#include "net/http/http_session.hpp"
#include "net/http/http_session_exchange.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <array>

namespace lamella::net {

namespace asio = boost::asio;
using boost::system::error_code;
using clock = std::chrono::steady_clock;

namespace {

/// Bytes a client may send ahead while its answer is being made before it is cut off.
constexpr size_t early_bytes_max = 64 << 10;
/// Reads in one go before others get their turn: few, for dozens may send large bodies at once.
constexpr int reads_per_turn = 4;

bool printable_id(std::string_view id) {
  return !id.empty() && id.size() <= 128
         && std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

} // namespace

void http_session::wait_readable() {
  if (phase_ == phase::closed || half_closed_) return;
  socket_.wait_readable([self = shared_from_this()](error_code ec) {
    if (!ec) self->on_readable();
  });
}

void http_session::on_readable() {
  thread_local std::array<char, 64 << 10> buffer;
  for (int turn = 0; turn < reads_per_turn; ++turn) {
    if (phase_ == phase::closed) return;
    error_code ec;
    const size_t count = socket_.read_some(buffer, ec);
    if (ec == asio::error::would_block) break;
    if (ec == asio::error::eof) {
      on_eof();
      return;
    }
    if (ec == boost::system::errc::wrong_protocol_type) {
      refuse(bad_request("this address serves HTTPS: use https://"));
      break;
    }
    if (ec) {
      close();
      return;
    }
    take_bytes({buffer.data(), count});
  }
  wait_readable();
}

void http_session::take_bytes(std::string_view bytes) {
  if (bytes.empty()) return;
  switch (phase_) {
  case phase::idle:
    // A line end after the previous body is an old habit of some clients.
    while (!bytes.empty() && (bytes.front() == '\r' || bytes.front() == '\n')) {
      if (++early_bytes_ > 4) {
        refuse(bad_request("empty lines instead of a request"));
        return;
      }
      bytes.remove_prefix(1);
    }
    if (bytes.empty()) return;
    arrived_ = clock::now();
    phase_ = phase::head;
    page_fields_ = {};
    errors_ = error_format::openai;
    scanner_.emplace(core_->limits);
    // The first request has to be complete in time from the accept on.
    if (requests_ > 0)
      deadline_in(core_->limits.header_time, &http_session::head_over);
    else {
      const auto left = core_->limits.header_time - (arrived_ - connected_);
      deadline_in(std::max(std::chrono::ceil<std::chrono::milliseconds>(left),
                           std::chrono::milliseconds(0)),
                  &http_session::head_over);
    }
    [[fallthrough]];
  case phase::head:
    in_ += bytes;
    parse_head_bytes();
    return;
  case phase::body:
    take_body(bytes);
    return;
  case phase::answer:
    if (last_queued_ && in_.size() + bytes.size() <= early_bytes_max) {
      in_ += bytes; // the next request: the answer is out but for the last step of its writing
      return;
    }
    early_bytes_ += bytes.size();
    if (bytes.find_first_not_of("\r\n") != std::string_view::npos) close_after_ = true;
    if (early_bytes_ > early_bytes_max) close();
    return;
  case phase::linger:
    lingered_ += bytes.size();
    if (lingered_ > core_->limits.linger_bytes) close();
    return;
  case phase::closed:
    return;
  }
}

void http_session::on_eof() {
  half_closed_ = true;
  switch (phase_) {
  case phase::head:
  case phase::body:
    refuse(bad_request("the connection ended in the middle of a request"));
    return;
  case phase::answer:
    // A close of both directions looks the same until something is written: so wait a little, then
    // take it for one.
    close_after_ = true;
    if (!last_queued_) deadline_in(core_->limits.half_close_time, &http_session::half_close_over);
    return;
  case phase::linger:
    if (out_.empty()) close();
    return;
  case phase::idle:
  case phase::closed:
    close();
    return;
  }
}

void http_session::parse_head_bytes() {
  try {
    const auto size = scanner_->scan(in_);
    if (!size) return;
    head_ = parse_head(std::string_view(in_).substr(0, *size), core_->limits);
    errors_ = error_format_of(head_->path);
    page_fields_ = listener_->pages.answer_fields(head_->method, head_->headers);
    check_length(*head_, core_->limits);
    const std::string bytes = std::exchange(in_, {});
    begin_body(std::string_view(bytes).substr(*size));
  } catch (const api_error& error) {
    refuse(error);
  }
}

void http_session::begin_body(std::string_view rest) {
  phase_ = phase::body;
  body_.clear();
  body_share_ = byte_budget::share{listener_->memory.bodies};
  if (!head_->chunked && head_->content_length == 0) {
    dispatch();
    take_bytes(rest);
    return;
  }
  if (head_->chunked) chunks_.emplace(core_->limits);
  body_started_ = clock::now();
  body_tick();
  if (head_->expect_continue && rest.empty()) {
    // Nothing is being written now, so these 25 bytes fit into the socket; if not, the client goes
    // on without them.
    socket_.write_now("HTTP/1.1 100 Continue\r\n\r\n");
  }
  take_bytes(rest);
}

void http_session::take_body(std::string_view bytes) {
  size_t used = 0;
  bool complete = false;
  try {
    if (head_->chunked) {
      make_room(bytes.size());
      used = chunks_->feed(bytes, body_);
      complete = chunks_->done();
    } else {
      used = std::min<uint64_t>(bytes.size(), head_->content_length - body_.size());
      make_room(used);
      body_.append(bytes, 0, used);
      complete = body_.size() == head_->content_length;
    }
  } catch (const api_error& error) {
    refuse(error);
    return;
  }
  if (!complete) return;
  dispatch();
  take_bytes(bytes.substr(used));
}

/// Room in the body for so many bytes more, if the bodies of the listener's requests leave any.
/// What is announced and never sent takes nothing: only what has come is held, and what is reserved
/// beyond it are addresses of pages that nobody has written to.
void http_session::make_room(size_t more) {
  constexpr size_t step = size_t{64} << 10;
  const size_t needed = body_.size() + more;
  const size_t most = head_->chunked ? core_->limits.body_bytes : head_->content_length;
  const size_t wanted = std::max(needed, std::min(most, body_share_.bytes() + step));
  if (needed > body_share_.bytes() && !body_share_.hold(wanted) && !body_share_.hold(needed)) {
    listener_->memory.bodies->count_refusal();
    throw no_capacity("the memory for request bodies is full (limits.bodies_bytes): retry soon");
  }
  if (needed > body_.capacity())
    body_.reserve(std::max(needed, std::min<size_t>(most, 4 * body_.capacity())));
}

void http_session::dispatch() {
  phase_ = phase::answer;
  early_bytes_ = 0;
  ++requests_;
  ++exchange_;
  fate_ = std::make_shared<http_exchange_fate>();
  streaming_ = false;
  last_queued_ = false;
  head_request_ = head_->method == "HEAD";
  http_request request;
  request.method = std::move(head_->method);
  request.path = std::move(head_->path);
  request.query = std::move(head_->query);
  request.headers = std::move(head_->headers);
  request.body = std::exchange(body_, {});
  request.body_share = std::move(body_share_);
  request.remote_address = address_;
  request.listener = listener_->name;
  const std::string_view given = request.headers.get("x-request-id");
  request_id_ = printable_id(given) ? std::string(given) : core_->new_request_id();
  request.request_id = request_id_;
  request.connected = connected_;
  request.arrived = arrived_;
  core_->requests.fetch_add(1, std::memory_order_relaxed);
  core_->exchange_begun(listener_->name);
  deadline_in(core_->answer_time, &http_session::answer_over);
  http_exchange_ptr exchange = std::make_shared<http_session_exchange>(
      shared_from_this(), exchange_, fate_, std::move(request));
  try {
    listener_->handler(std::move(exchange));
  } catch (const std::exception&) {
    // The exchange was dropped on the way out, which answers with 500.
  }
}

} // namespace lamella::net
