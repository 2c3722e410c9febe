/// A server on a free port of the loopback address, with a handler for tests.
#pragma once

#include "net/http/http_server.hpp"
#include "tests/net/http/raw_client.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace lamella::test {

/// Waits for things that happen on other threads, with a deadline instead of a sleep.
template <class T> class inbox {
public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  T take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(5), [&] { return !values_.empty(); }))
      throw std::runtime_error("inbox: nothing came before the deadline");
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
};

/// Times that only a broken client or server needs; a test that is about one of them sets it.
struct patient_limits : net::http_limits {
  patient_limits() {
    header_time = body_time = body_rate_after = std::chrono::minutes(5);
    idle_time = stall_time = half_close_time = linger_time = std::chrono::minutes(5);
    answer_rate_after = std::chrono::minutes(5);
  }
};

/// Answers every request with "METHOD path?query|body"; requests to /hold go to `held` instead.
struct echo_server {
  inbox<net::http_exchange_ptr> held;
  net::http_server server;

  explicit echo_server(net::http_limits limits = patient_limits(), unsigned threads = 1,
                       std::shared_ptr<const net::tls_identity> identity = nullptr,
                       std::shared_ptr<byte_budget> bodies = nullptr)
      : server(settings_of(limits, threads),
               {{"public",
                 "127.0.0.1",
                 0,
                 [this](net::http_exchange_ptr e) {
                   const net::http_request& r = e->request();
                   if (r.path == "/hold") {
                     held.put(std::move(e));
                     return;
                   }
                   if (r.path == "/throw") throw std::runtime_error("x");
                   if (r.path == "/drop") return;
                   e->respond(200, {{"content-type", "text/plain"}},
                              r.method + " " + r.path + "?" + r.query + "|" + r.body);
                 },
                 {},
                 std::move(identity),
                 memory_of(std::move(bodies))}}) {
    server.start();
  }

  uint16_t port() const { return server.port("public"); }

  static net::http_server::settings settings_of(const net::http_limits& limits, unsigned threads) {
    net::http_server::settings s;
    s.limits = limits;
    s.threads = threads;
    s.version = "9.9";
    return s;
  }

  static net::http_memory memory_of(std::shared_ptr<byte_budget> bodies) {
    net::http_memory all;
    if (bodies) all.bodies = std::move(bodies);
    return all;
  }

  /// Sends raw bytes on a connection of its own and returns all that comes back until it is closed.
  std::string exchange(std::string_view bytes) const {
    raw_client client(port());
    client.send(bytes);
    return client.read_all();
  }
};

inline int status_of(const std::string& answer) {
  if (answer.size() < 12 || !answer.starts_with("HTTP/1.1 ")) return 0;
  return std::stoi(answer.substr(9, 3));
}

} // namespace lamella::test
