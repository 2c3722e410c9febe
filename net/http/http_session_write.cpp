// The writing half of a session: answers and streams out, one write at a time.
#include "net/http/http_session.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace lamella::net {

using boost::system::error_code;
using clock = std::chrono::steady_clock;

namespace {

/// A shorter answer costs no more than its connection does, and probes are always answered.
constexpr size_t short_answer_bytes = 4 << 10;

/// For a reader of a whole answer: whoever takes a little again and again holds its memory no
/// longer.
std::chrono::milliseconds time_to_take(size_t bytes, const http_limits& limits) {
  return limits.answer_rate_after
         + std::chrono::milliseconds(bytes * 1'000 / limits.answer_bytes_per_second);
}

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

} // namespace

bool http_session::may_keep() const {
  return head_ && head_->keep_alive && !core_->draining && !close_after_ && !half_closed_
         && requests_ < core_->limits.requests_per_connection;
}

http_headers http_session::answer_headers(http_headers own, bool keep) const {
  own.set("connection", keep ? "keep-alive" : "close");
  own.set("date", http_date());
  own.set("x-request-id", request_id_);
  // By this name clients of Anthropic's API look for it.
  if (errors_ == error_format::anthropic) own.set("request-id", request_id_);
  own.set("x-lamella-version", core_->version);
  for (const auto& [name, value] : page_fields_) own.add(name, value);
  return own;
}

void http_session::refuse(const api_error& error) {
  core_->refused.fetch_add(1, std::memory_order_relaxed);
  if (request_id_.empty()) request_id_ = core_->new_request_id();
  phase_ = phase::linger;
  close_after_ = true;
  in_.clear();
  body_ = {};
  body_share_.hold(0);
  ++deadline_turn_; // until the answer is written the stall limit holds
  deadline_.cancel();
  std::string body = error_body(error, request_id_, errors_);
  http_headers headers = answer_headers(error_headers(error), false);
  headers.set("content-length", std::to_string(body.size()));
  push({response_head_text(error.status, headers) + body, {}, true});
}

void http_session::answer(uint64_t exchange, int status, http_headers headers, std::string body) {
  if (exchange != exchange_) return;
  byte_budget::share room{listener_->memory.answers};
  if (body.size() > short_answer_bytes && !head_request_ && !room.hold_in_turn(body.size())) {
    listener_->memory.answers->count_refusal();
    answer_error(exchange, no_capacity("the memory for answers that wait for their readers is full "
                                       "(limits.bodies_bytes): retry soon"));
    return;
  }
  const bool bodiless = status == 204 || status == 304;
  const bool keep = may_keep();
  if (!keep) close_after_ = true;
  headers = answer_headers(std::move(headers), keep);
  if (!bodiless) headers.set("content-length", std::to_string(body.size()));
  std::string bytes = response_head_text(status, headers);
  if (!bodiless && !head_request_) bytes += body;
  const auto written_by = clock::now() + time_to_take(bytes.size(), core_->limits);
  push({std::move(bytes), {}, true, std::move(room), written_by});
}

void http_session::answer_error(uint64_t exchange, const api_error& error) {
  answer(exchange, error.status, error_headers(error), error_body(error, request_id_, errors_));
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
  answer_error(exchange, internal_error("the request was dropped without an answer"));
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
      deadline_in(core_->answer_time, &http_session::answer_over);
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
  const output& front = out_.front();
  stall_.expires_at(std::min(clock::now() + core_->limits.stall_time, front.written_by));
  stall_.async_wait([self = shared_from_this()](error_code ec) {
    // A write that ended meanwhile has set a new time or none.
    if (ec || !self->writing_ || self->phase_ == phase::closed) return;
    if (self->stall_.expiry() > clock::now()) return;
    self->core_->stalls.fetch_add(1, std::memory_order_relaxed);
    self->close();
  });
  socket_.write_some(std::string_view{front.bytes}.substr(out_at_),
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
  socket_.shut_send();
  if (half_closed_) {
    close();
    return;
  }
  phase_ = phase::linger;
  deadline_in(core_->limits.linger_time, &http_session::linger_over);
  if (!served_) wait_readable(); // never started reading
}

} // namespace lamella::net
