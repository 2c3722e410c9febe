/// Deadlines of conversations over sockets.
#pragma once

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>

namespace lamella::net {

/// Closes a socket when its time is over; a coroutine that waits for it then fails. A socket whose
/// limit was cancelled stays open, also where the timer had expired by then and its handler was
/// still to come: so it is when a thread stood still for longer than the limit and finds both the
/// answer and the timer.
template <class Socket> class time_limit {
public:
  time_limit(std::shared_ptr<Socket> socket, std::chrono::milliseconds timeout)
      : timer_{std::make_shared<boost::asio::steady_timer>(socket->get_executor(), timeout)} {
    timer_->async_wait([socket = std::weak_ptr{socket}, timer = timer_, now = now_](auto ec) {
      const auto still = socket.lock();
      if (ec || !still || *now == state::cancelled) return;
      *now = state::over;
      boost::system::error_code ignored;
      still->close(ignored);
    });
  }
  ~time_limit() { cancel(); }
  time_limit(const time_limit&) = delete;
  time_limit& operator=(const time_limit&) = delete;
  void cancel() {
    if (*now_ == state::running) *now_ = state::cancelled;
    timer_->cancel();
  }
  bool over() const { return *now_ == state::over; }

private:
  enum class state { running, cancelled, over };
  std::shared_ptr<state> now_ = std::make_shared<state>(state::running);
  std::shared_ptr<boost::asio::steady_timer> timer_;
};

} // namespace lamella::net
