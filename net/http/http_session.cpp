#include "net/http/http_session.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>

namespace lamella::net {

namespace asio = boost::asio;
using boost::system::error_code;
using clock = std::chrono::steady_clock;

http_session::http_session(std::shared_ptr<http_core> core,
                           std::shared_ptr<const http_listener> listener, tcp::socket socket,
                           const tls_identity* identity)
    : core_(std::move(core)), listener_(std::move(listener)), socket_(std::move(socket), identity),
      deadline_(socket_.get_executor()), stall_(socket_.get_executor()), connected_(clock::now()),
      arrived_(connected_), body_started_(connected_) {
  error_code ec;
  const auto peer = socket_.remote_endpoint(ec);
  address_ = ec ? "unknown" : peer.address().to_string();
}

http_session::~http_session() {
  if (entered_) core_->leave(this, listener_->name, address_, served_);
}

void http_session::start(http_core::verdict entered) {
  entered_ = true;
  served_ = entered == http_core::verdict::serve;
  if (phase_ == phase::closed) return; // cut before it began
  if (core_->stopped) {                // came when the server had looked for the last time
    close();
    return;
  }
  if (!served_) {
    close_after_ = true;
    refuse(entered == http_core::verdict::too_many
               ? no_capacity("the listener has too many connections (http.connections_max): retry "
                             "soon")
               : rate_limit_exceeded("this address has too many connections "
                                     "(http.connections_per_address_max): reuse or close some",
                                     1'000));
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
    refuse(deadline_exceeded("the body arrived too slowly"));
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
  core_->exchange_ended(listener_->name);
}

void http_session::close() {
  if (phase_ == phase::closed) return;
  const bool between = phase_ == phase::idle; // two requests: a proper end
  phase_ = phase::closed;
  const auto self = shared_from_this(); // the callbacks below may hold the last other pointer
  ++deadline_turn_;
  deadline_.cancel();
  stall_.cancel();
  if (between) socket_.shut_send();
  socket_.close();
  end_exchange(false);
  std::deque<output> unwritten;
  unwritten.swap(out_);
  for (const output& each : unwritten)
    if (each.written) each.written(false);
  if (entered_) core_->leave(this, listener_->name, address_, served_);
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
