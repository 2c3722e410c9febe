#include "net/http_session.hpp"

#include "net/http_session_exchange.hpp"

#include <boost/asio/buffer.hpp>

#include <algorithm>
#include <array>
#include <ctime>

namespace lamella::net {

namespace asio = boost::asio;
using boost::system::error_code;
using clock = std::chrono::steady_clock;

namespace {

/// Bytes a client may send ahead while its answer is being made before it is cut off.
constexpr size_t early_bytes_max = 64 << 10;
/// Reads in one go before others get their turn.
constexpr int reads_per_turn = 16;

std::string http_date() {
  constexpr std::array days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                days[static_cast<size_t>(utc.tm_wday)], utc.tm_mday,
                months[static_cast<size_t>(utc.tm_mon)], utc.tm_year + 1900, utc.tm_hour,
                utc.tm_min, utc.tm_sec);
  return text;
}

bool printable_id(std::string_view id) {
  return !id.empty() && id.size() <= 128
         && std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

} // namespace

http_session::http_session(std::shared_ptr<http_core> core,
                           std::shared_ptr<const http_listener> listener, tcp::socket socket)
    : core_(std::move(core)), listener_(std::move(listener)), socket_(std::move(socket)),
      deadline_(socket_.get_executor()), stall_(socket_.get_executor()), connected_(clock::now()),
      arrived_(connected_), body_started_(connected_) {
  error_code ec;
  const auto peer = socket_.remote_endpoint(ec);
  address_ = ec ? "unknown" : peer.address().to_string();
}

http_session::~http_session() {
  if (entered_) core_->leave(this, address_, served_);
}

void http_session::start(http_core::verdict entered) {
  entered_ = true;
  served_ = entered == http_core::verdict::serve;
  if (!served_) {
    close_after_ = true;
    refuse(entered == http_core::verdict::too_many
               ? no_capacity("the server has as many connections as it takes")
               : rate_limit_exceeded(1'000));
    return;
  }
  deadline_in(core_->limits.header_time, &http_session::idle_over);
  wait_readable();
}

// --- deadlines

void http_session::deadline_in(std::chrono::milliseconds time, void (http_session::*then)()) {
  const uint64_t turn = ++deadline_turn_;
  deadline_.expires_after(time);
  deadline_.async_wait([self = shared_from_this(), turn, then](error_code ec) {
    if (!ec && turn == self->deadline_turn_) ((*self).*then)();
  });
}

void http_session::idle_over() { close(); }

void http_session::head_over() {
  refuse(deadline_exceeded("the request head was not complete in time"));
}

void http_session::body_tick() {
  const http_limits& limits = core_->limits;
  const auto elapsed = clock::now() - body_started_;
  const double seconds = std::chrono::duration<double>(elapsed).count();
  if (elapsed >= limits.body_time) {
    refuse(deadline_exceeded("the body was not complete in time"));
    return;
  }
  if (elapsed >= limits.body_rate_after
      && static_cast<double>(body_.size())
             < seconds * static_cast<double>(limits.body_bytes_per_second)) {
    refuse(deadline_exceeded("the body came too slowly"));
    return;
  }
  using std::chrono::milliseconds;
  auto next = std::chrono::ceil<milliseconds>(limits.body_time - elapsed);
  if (elapsed < limits.body_rate_after)
    next = std::min(next, std::chrono::ceil<milliseconds>(limits.body_rate_after - elapsed));
  else
    next = std::min(next, milliseconds(1'000));
  deadline_in(std::max(next, milliseconds(1)), &http_session::body_tick);
}

void http_session::answer_over() {
  if (streaming_ || last_queued_) {
    close();
    return;
  }
  end_exchange(false);
  refuse(internal_error("the request was not answered in time"));
}

void http_session::half_close_over() {
  if (!last_queued_) close();
}

void http_session::linger_over() { close(); }

// --- reading

void http_session::wait_readable() {
  if (phase_ == phase::closed || half_closed_) return;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code ec) {
    if (!ec) self->on_readable();
  });
}

void http_session::on_readable() {
  thread_local std::array<char, 64 << 10> buffer;
  for (int turn = 0; turn < reads_per_turn; ++turn) {
    if (phase_ == phase::closed) return;
    error_code ec;
    const size_t count = socket_.read_some(asio::buffer(buffer), ec);
    if (ec == asio::error::would_block) break;
    if (ec == asio::error::eof) {
      on_eof();
      return;
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
    const std::string bytes = std::exchange(in_, {});
    begin_body(std::string_view(bytes).substr(*size));
  } catch (const api_error& error) {
    refuse(error);
  }
}

void http_session::begin_body(std::string_view rest) {
  phase_ = phase::body;
  body_.clear();
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
    error_code ignored;
    socket_.write_some(asio::buffer(std::string_view("HTTP/1.1 100 Continue\r\n\r\n")), ignored);
  }
  take_bytes(rest);
}

void http_session::take_body(std::string_view bytes) {
  size_t used = 0;
  bool complete = false;
  try {
    if (head_->chunked) {
      used = chunks_->feed(bytes, body_);
      complete = chunks_->done();
    } else {
      used = std::min<uint64_t>(bytes.size(), head_->content_length - body_.size());
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
  request.remote_address = address_;
  request.listener = listener_->name;
  const std::string_view given = request.headers.get("x-request-id");
  request_id_ = printable_id(given) ? std::string(given) : core_->new_request_id();
  request.request_id = request_id_;
  request.connected = connected_;
  request.arrived = arrived_;
  core_->requests.fetch_add(1, std::memory_order_relaxed);
  core_->exchange_begun();
  deadline_in(core_->limits.answer_time, &http_session::answer_over);
  http_exchange_ptr exchange = std::make_shared<http_session_exchange>(
      shared_from_this(), exchange_, fate_, std::move(request));
  try {
    listener_->handler(std::move(exchange));
  } catch (const std::exception&) {
    // The exchange was dropped on the way out, which answers with 500.
  }
}

// --- answering

bool http_session::may_keep() const {
  return head_ && head_->keep_alive && !core_->draining && !close_after_ && !half_closed_
         && requests_ < core_->limits.requests_per_connection;
}

http_headers http_session::answer_headers(http_headers own, bool keep) const {
  own.set("connection", keep ? "keep-alive" : "close");
  own.set("date", http_date());
  own.set("x-request-id", request_id_);
  own.set("x-lamella-version", core_->version);
  return own;
}

void http_session::refuse(const api_error& error) {
  core_->refused.fetch_add(1, std::memory_order_relaxed);
  if (request_id_.empty()) request_id_ = core_->new_request_id();
  phase_ = phase::linger;
  close_after_ = true;
  in_.clear();
  body_.clear();
  ++deadline_turn_; // until the answer is written the stall limit holds
  deadline_.cancel();
  std::string body = error_body(error, request_id_);
  http_headers headers = answer_headers(error_headers(error), false);
  headers.set("content-length", std::to_string(body.size()));
  push({response_head_text(error.status, headers) + body, {}, true});
}

void http_session::answer(uint64_t exchange, int status, http_headers headers, std::string body) {
  if (exchange != exchange_) return;
  const bool bodiless = status == 204 || status == 304;
  const bool keep = may_keep();
  if (!keep) close_after_ = true;
  headers = answer_headers(std::move(headers), keep);
  if (!bodiless) headers.set("content-length", std::to_string(body.size()));
  std::string bytes = response_head_text(status, headers);
  if (!bodiless && !head_request_) bytes += body;
  push({std::move(bytes), {}, true});
}

void http_session::open_stream(uint64_t exchange, http_headers headers) {
  if (exchange != exchange_) return;
  streaming_ = true;
  chunked_out_ = !head_->http_1_0;
  const bool keep = chunked_out_ && may_keep();
  if (!keep) close_after_ = true;
  headers = answer_headers(std::move(headers), keep);
  if (chunked_out_) headers.set("transfer-encoding", "chunked");
  push({response_head_text(200, headers), {}, false});
}

void http_session::stream(uint64_t exchange, std::string chunk, std::function<void(bool)> written) {
  if (exchange != exchange_ || last_queued_) {
    written(false);
    return;
  }
  if (head_request_) chunk.clear();
  if (chunked_out_ && !chunk.empty()) {
    char size[24];
    std::snprintf(size, sizeof size, "%zx\r\n", chunk.size());
    chunk.insert(0, size);
    chunk += "\r\n";
  }
  push({std::move(chunk), std::move(written), false});
}

void http_session::end_stream(uint64_t exchange, bool close) {
  if (exchange != exchange_ || last_queued_) return;
  if (close) close_after_ = true;
  push({chunked_out_ && !head_request_ ? "0\r\n\r\n" : "", {}, true});
}

void http_session::abandon(uint64_t exchange) {
  if (exchange != exchange_ || last_queued_) return;
  if (streaming_) {
    close();
    return;
  }
  const api_error error = internal_error("the request was dropped without an answer");
  answer(exchange, error.status, error_headers(error), error_body(error, request_id_));
}

void http_session::watch(uint64_t exchange, std::function<void()> closed) {
  if (exchange == exchange_) closed_ = std::move(closed);
}

void http_session::push(output next) {
  if (next.last) last_queued_ = true;
  if (phase_ == phase::answer && !half_closed_) {
    if (last_queued_) {
      ++deadline_turn_;
      deadline_.cancel();
    } else {
      deadline_in(core_->limits.answer_time, &http_session::answer_over);
    }
  }
  out_.push_back(std::move(next));
  if (!writing_) write_more();
}

void http_session::write_more() {
  while (!out_.empty() && out_at_ == out_.front().bytes.size()) {
    output done = std::move(out_.front());
    out_.pop_front();
    out_at_ = 0;
    if (done.written) done.written(true);
    if (done.last) {
      answer_complete();
      return;
    }
  }
  if (out_.empty() || phase_ == phase::closed) return;
  writing_ = true;
  stall_.expires_after(core_->limits.stall_time);
  stall_.async_wait([self = shared_from_this()](error_code ec) {
    // A write that ended meanwhile has set a new time or none.
    if (ec || !self->writing_ || self->stall_.expiry() > clock::now()) return;
    self->core_->stalls.fetch_add(1, std::memory_order_relaxed);
    self->close();
  });
  const output& front = out_.front();
  socket_.async_write_some(asio::buffer(front.bytes.data() + out_at_, front.bytes.size() - out_at_),
                           [self = shared_from_this()](error_code ec, size_t count) {
                             self->writing_ = false;
                             if (self->phase_ == phase::closed) return;
                             if (ec) {
                               self->close();
                               return;
                             }
                             self->out_at_ += count;
                             self->write_more();
                           });
}

void http_session::answer_complete() {
  stall_.cancel();
  end_exchange(true);
  if (close_after_ || half_closed_) {
    linger();
    return;
  }
  phase_ = phase::idle;
  last_queued_ = false;
  streaming_ = false;
  early_bytes_ = 0;
  request_id_.clear();
  deadline_in(core_->limits.idle_time, &http_session::idle_over);
  const std::string next = std::exchange(in_, {});
  take_bytes(next);
}

void http_session::linger() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  if (half_closed_) {
    close();
    return;
  }
  phase_ = phase::linger;
  deadline_in(core_->limits.linger_time, &http_session::linger_over);
  if (!served_) wait_readable(); // never started reading
}

void http_session::end_exchange(bool complete) {
  if (exchange_ % 2 == 0) return;
  ++exchange_;
  fate_->complete = complete;
  fate_->open = false;
  fate_.reset();
  const auto closed = std::exchange(closed_, nullptr);
  if (!complete) {
    core_->disconnects.fetch_add(1, std::memory_order_relaxed);
    if (closed) closed();
  }
  core_->exchange_ended();
}

void http_session::close() {
  if (phase_ == phase::closed) return;
  phase_ = phase::closed;
  const auto self = shared_from_this(); // the callbacks below may hold the last other pointer
  ++deadline_turn_;
  deadline_.cancel();
  stall_.cancel();
  error_code ignored;
  socket_.close(ignored);
  end_exchange(false);
  std::deque<output> unwritten;
  unwritten.swap(out_);
  for (const output& each : unwritten)
    if (each.written) each.written(false);
  if (entered_) core_->leave(this, address_, served_);
  entered_ = false;
}

void http_session::close_if_idle() {
  asio::post(executor(), [self = shared_from_this()] {
    if (self->phase_ == phase::idle) self->close();
  });
}

void http_session::cut() {
  asio::post(executor(), [self = shared_from_this()] { self->close(); });
}

} // namespace lamella::net
