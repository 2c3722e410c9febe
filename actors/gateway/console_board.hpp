/// What the consoles in browsers are shown, gathered once for all of them.
#pragma once

#include "net/http/http_exchange.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lamella::actors {

/// The newest page, and who waits for the next one. However many consoles are open, a page is made
/// once in `lifetime`. All methods may be called from any thread.
class console_board {
public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds lifetime{900};
  /// A page that was not made in this time never will be: another one is.
  static constexpr std::chrono::seconds patience{10};

  /// Answers with the page if it is young enough, else with the next one. True where the caller
  /// has to make the next page: nobody else makes it.
  bool ask(net::http_exchange_ptr exchange, time_point now) {
    std::unique_lock lock{mutex_};
    if (!made_ || now - *made_ >= lifetime || now < *made_) {
      asking_.push_back(std::move(exchange));
      if (asking_.size() > 1 && now - making_since_ < patience) return false;
      making_since_ = now;
      return true;
    }
    const auto page = page_;
    lock.unlock();
    answer(*exchange, *page);
    return false;
  }

  /// The next page, as of `made`: everybody who waits gets it.
  void show(std::string page, time_point made) {
    const auto shared = std::make_shared<const std::string>(std::move(page));
    std::unique_lock lock{mutex_};
    page_ = shared;
    made_ = made;
    const auto asking = std::exchange(asking_, {});
    lock.unlock();
    for (const auto& each : asking) answer(*each, *shared);
  }

private:
  static void answer(net::http_exchange& exchange, const std::string& page) {
    exchange.respond(200, {{"content-type", "application/json"}, {"cache-control", "no-store"}},
                     page);
  }

  std::mutex mutex_; ///< of the members below
  std::shared_ptr<const std::string> page_;
  std::optional<time_point> made_;
  std::vector<net::http_exchange_ptr> asking_; ///< of one connection each
  time_point making_since_{};                  ///< of the page that they wait for
};

} // namespace lamella::actors
