/// Shared state of the sessions of one HTTP server. Internal to net/http_*.
#pragma once

#include "net/http/http_settings.hpp"

#include <boost/asio/io_context.hpp>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

class http_session;

/// The event loop, limits, counters, and the list of sessions. Thread-safe. Exchanges that outlive
/// the server keep it alive.
class http_core {
public:
  explicit http_core(http_settings settings);

  boost::asio::io_context io;
  std::atomic<bool> stopped{false}; ///< the loop is stopped: post nothing
  const http_limits limits;
  std::atomic<http_limits::milliseconds> answer_time; ///< of `limits`, until somebody changes it
  const std::string version;
  /// Of all listeners; complete before the loop runs.
  std::vector<std::shared_ptr<const byte_budget>> answers;

  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> turned_away{0};
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> refused{0};
  std::atomic<uint64_t> disconnects{0};
  std::atomic<uint64_t> stalls{0};
  std::atomic<bool> draining{false};

  /// How a new connection is treated.
  enum class verdict : uint8_t { serve, too_many, too_many_from_address, drop };

  /// Enters a session that is served or gets an error answer (`drop`: neither). Each listener has
  /// the limits to itself: clients of the public one, however many they are, take no place from
  /// operators and probes on the admin one, also where a proxy gives all of them one address.
  verdict enter(const std::shared_ptr<http_session>& session, const std::string& listener,
                const std::string& address);
  void leave(http_session* session, const std::string& listener, const std::string& address,
             bool served);

  void exchange_begun(const std::string& listener);
  void exchange_ended(const std::string& listener);

  size_t sessions() const;
  size_t exchanges() const;
  std::vector<std::shared_ptr<http_session>> all_sessions() const;

  /// Waits until no exchange (of one listener, or at all) or no session is left; false when the
  /// deadline passed before.
  bool wait_exchanges_of(std::string_view listener, std::chrono::steady_clock::time_point deadline);
  bool wait_exchanges(std::chrono::steady_clock::time_point deadline);
  bool wait_sessions(std::chrono::steady_clock::time_point deadline);

  /// "req-..." unlike any other of this server.
  std::string new_request_id();

private:
  /// The connections of one listener.
  struct connection_counts {
    std::map<std::string, size_t> by_address;
    size_t served = 0;
    size_t told = 0; ///< over the limits, being answered
  };

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<http_session*, std::weak_ptr<http_session>> sessions_;
  std::map<std::string, connection_counts> connections_; ///< by listener
  std::map<std::string, size_t, std::less<>> exchanges_; ///< open ones, by listener
  std::atomic<uint64_t> next_id_;
};

} // namespace lamella::net
