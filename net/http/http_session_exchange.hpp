/// The exchange that a session gives to a handler. Internal to net/http_*.
#pragma once

#include "net/http/http_session.hpp"

#include <atomic>
#include <memory>

namespace lamella::net {

/// Hands every call over to the session's strand. Any thread.
class http_session_exchange final : public http_exchange,
                                    public std::enable_shared_from_this<http_session_exchange> {
public:
  http_session_exchange(std::shared_ptr<http_session> session, uint64_t number,
                        std::shared_ptr<http_exchange_fate> fate, http_request request);
  ~http_session_exchange() override;

  const http_request& request() const override { return request_; }
  http_body take_body() override;
  void respond(int status, http_headers headers, std::string body) override;
  void start_stream(http_headers headers) override;
  void write(std::string chunk, std::function<void(bool ok)> written) override;
  void finish(bool close) override;
  void on_closed(std::function<void()> closed) override;
  bool open() const override { return fate_->open; }

private:
  enum class state : uint8_t { fresh, streaming, done };
  void advance(state from, state to, const char* call);

  std::shared_ptr<http_session> session_;
  const uint64_t number_;
  const std::shared_ptr<http_exchange_fate> fate_;
  http_request request_;
  std::atomic<state> state_{state::fresh};
  std::atomic<bool> writing_{false};
};

} // namespace lamella::net
