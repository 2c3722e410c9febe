/// One accepted connection: reads requests, writes answers. Internal to net/http_*.
#pragma once

#include "net/http/api_error.hpp"
#include "net/http/http_core.hpp"
#include "net/http/http_framing.hpp"
#include "net/http/http_socket.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lamella::net {

/// What became of an exchange; shared by the session and the exchange it gave away.
struct http_exchange_fate {
  std::atomic<bool> open{true};
  std::atomic<bool> complete{false}; ///< the whole answer was written
};

/// All members run on the socket's strand. The phases follow each other
///   idle -> head -> body -> answer -> idle ... -> linger -> closed
/// and every phase has a deadline. Reading never stops before `closed`: while an answer is being
/// made it notices that the client left. Reading holds no memory: the socket is waited for, then
/// read into a buffer of the thread.
class http_session : public std::enable_shared_from_this<http_session> {
public:
  using tcp = boost::asio::ip::tcp;

  /// `identity`: of a listener that speaks HTTPS, else nullptr.
  http_session(std::shared_ptr<http_core> core, std::shared_ptr<const http_listener> listener,
               tcp::socket socket, const tls_identity* identity);
  ~http_session();

  const std::string& address() const { return address_; }

  /// Serves the connection, or answers with `refusal` and closes it. `entered` says what
  /// http_core::enter counted it as.
  void start(http_core::verdict entered);

  /// From any thread.
  void close_if_idle();
  void cut();

  // Calls of the exchange with that number; on the strand, ignored when it is over.
  void answer(uint64_t exchange, int status, http_headers headers, std::string body);
  void open_stream(uint64_t exchange, http_headers headers);
  void stream(uint64_t exchange, std::string chunk, std::function<void(bool)> written);
  void end_stream(uint64_t exchange, bool close);
  void abandon(uint64_t exchange); ///< the owner let go of it without an (end of the) answer
  void watch(uint64_t exchange, std::function<void()> closed);

  const http_core& core() const { return *core_; }
  auto executor() { return socket_.get_executor(); }

private:
  enum class phase : uint8_t { idle, head, body, answer, linger, closed };
  struct output {
    std::string bytes;
    std::function<void(bool)> written;
    bool last = false;         ///< the answer is complete after this
    byte_budget::share room{}; ///< of the listener's memory for answers
    std::chrono::steady_clock::time_point written_by = std::chrono::steady_clock::time_point::max();
  };

  void deadline_in(std::chrono::milliseconds time, void (http_session::*then)());
  void idle_over();
  void head_over();
  void body_tick();
  void answer_over();
  void half_close_over();
  void linger_over();

  void wait_readable();
  void on_readable();
  void take_bytes(std::string_view bytes);
  void on_eof();

  void parse_head_bytes();
  void begin_body(std::string_view rest);
  void take_body(std::string_view bytes);
  void make_room(size_t more);
  void dispatch();

  void refuse(const api_error& error);
  void answer_error(uint64_t exchange, const api_error& error);
  http_headers answer_headers(http_headers own, bool keep) const;
  bool may_keep() const;

  void push(output next);
  void write_more();
  void answer_complete();
  void linger();
  void end_exchange(bool complete);
  void close();

  std::shared_ptr<http_core> core_;
  std::shared_ptr<const http_listener> listener_;
  http_socket socket_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer stall_;
  uint64_t deadline_turn_ = 0;
  std::string address_;
  std::chrono::steady_clock::time_point connected_;
  std::chrono::steady_clock::time_point arrived_;
  std::chrono::steady_clock::time_point body_started_;
  bool served_ = true;
  bool entered_ = false;

  phase phase_ = phase::idle;
  std::string in_; ///< bytes of a head that is not complete, or of the next request
  std::optional<head_scanner> scanner_;
  std::optional<request_head> head_;
  std::optional<chunk_decoder> chunks_;
  std::string body_;
  byte_budget::share body_share_; ///< what `body_` takes of the memory for bodies
  std::string request_id_;
  error_format errors_ = error_format::openai; ///< of the request's API
  http_headers page_fields_;                   ///< of the answer, for the browser of who asks
  size_t lingered_ = 0;
  size_t requests_ = 0;

  uint64_t exchange_ = 0; ///< number of the current one; odd while one is open
  std::shared_ptr<http_exchange_fate> fate_;
  std::function<void()> closed_;
  std::deque<output> out_;
  size_t out_at_ = 0; ///< bytes of out_.front() already written
  bool writing_ = false;
  bool streaming_ = false;
  bool chunked_out_ = false;
  bool head_request_ = false;
  bool last_queued_ = false;
  bool close_after_ = false;
  bool half_closed_ = false;
  size_t early_bytes_ = 0; ///< came while the answer was being made
};

} // namespace lamella::net
