/// Round-trip time of a link, measured periodically while the link is up.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include <sys/socket.h>

namespace lamella::net {

/// The round trips of the last ten seconds. Thread-safe.
class round_trips {
public:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds window{10};
  static constexpr size_t kept_max = 64;

  struct summary {
    /// Minimum of the window: the path alone, without queueing behind large frames and busy
    /// threads. 0: no measurement.
    std::chrono::nanoseconds least{0};
    uint64_t measured = 0; ///< since the link is up
  };

  void add(std::chrono::nanoseconds took, clock::time_point now);
  summary at(clock::time_point now) const;

private:
  struct measurement {
    clock::time_point when;
    std::chrono::nanoseconds took;
  };
  mutable std::mutex mutex_;
  std::deque<measurement> last_; ///< the oldest first
  uint64_t measured_ = 0;
};

/// Words of the measurement protocol over a socket.
enum class echo_word : uint64_t { ask = 0x6c6d6c61736b, answer, thanks };

/// One side of that protocol, on the thread of its socket.
template <class Socket> class echo {
public:
  using clock = round_trips::clock;

  echo(std::shared_ptr<Socket> socket, std::shared_ptr<round_trips> results)
      : socket_{std::move(socket)}, results_{std::move(results)} {}

  /// Words are so few that the socket always has room, unless the peer reads nothing.
  void say(echo_word word) {
    said_ = clock::now();
    [[maybe_unused]] const auto sent =
        ::send(socket_->native_handle(), &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  /// Replies, and records replies. False for an unknown word.
  bool hear(echo_word word) {
    switch (word) {
    case echo_word::ask:
      say(echo_word::answer);
      return true;
    case echo_word::answer:
      note();
      say(echo_word::thanks);
      return true;
    case echo_word::thanks:
      note();
      return true;
    }
    return false;
  }

private:
  void note() {
    const auto now = clock::now();
    results_->add(now - said_, now);
  }

  std::shared_ptr<Socket> socket_;
  std::shared_ptr<round_trips> results_;
  clock::time_point said_{};
};

/// Measures over a dedicated socket until it closes: the side that `asks` sends a word at every
/// interval; the peer replies and gets a reply, so both sides measure.
template <class Socket>
boost::asio::awaitable<void> keep_measuring(std::shared_ptr<Socket> socket, bool asks,
                                            std::chrono::milliseconds every,
                                            std::shared_ptr<round_trips> results) {
  namespace asio = boost::asio;
  const auto words = std::make_shared<echo<Socket>>(socket, results);
  const auto timer = std::make_shared<asio::steady_timer>(socket->get_executor());
  const auto ask_later = [&] {
    timer->expires_after(every);
    timer->async_wait([words, timer](boost::system::error_code ec) {
      if (!ec) words->say(echo_word::ask);
    });
  };
  if (asks) ask_later();
  while (true) {
    boost::system::error_code ec;
    echo_word word{};
    co_await asio::async_read(*socket, asio::buffer(&word, sizeof word),
                              asio::redirect_error(asio::use_awaitable, ec));
    if (ec || !words->hear(word)) break;
    if (asks && word == echo_word::answer) ask_later();
  }
  timer->cancel();
}

} // namespace lamella::net
