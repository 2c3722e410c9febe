/// Deadlines of conversations over sockets.
#pragma once

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>

namespace lamella::net {

/// Closes a socket when its time is over; a coroutine that waits for it then fails.
template <class Socket> class time_limit {
public:
  time_limit(std::shared_ptr<Socket> socket, std::chrono::milliseconds timeout)
      : timer_{std::make_shared<boost::asio::steady_timer>(socket->get_executor(), timeout)} {
    timer_->async_wait([socket = std::weak_ptr{socket}, timer = timer_, over = over_](auto ec) {
      const auto still = socket.lock();
      if (ec || !still) return;
      *over = true;
      boost::system::error_code ignored;
      still->close(ignored);
    });
  }
  ~time_limit() { cancel(); }
  time_limit(const time_limit&) = delete;
  time_limit& operator=(const time_limit&) = delete;
  void cancel() { timer_->cancel(); }
  bool over() const { return *over_; }

private:
  std::shared_ptr<bool> over_ = std::make_shared<bool>(false);
  std::shared_ptr<boost::asio::steady_timer> timer_;
};

} // namespace lamella::net
