#include "net/http/http_session_exchange.hpp"

#include <boost/asio/post.hpp>

#include <stdexcept>
#include <utility>

namespace lamella::net {

namespace asio = boost::asio;

http_session_exchange::http_session_exchange(std::shared_ptr<http_session> session, uint64_t number,
                                             std::shared_ptr<http_exchange_fate> fate,
                                             http_request request)
    : session_(std::move(session)), number_(number), fate_(std::move(fate)),
      request_(std::move(request)) {}

http_session_exchange::~http_session_exchange() {
  if (state_ == state::done || session_->core().stopped) return;
  asio::post(session_->executor(),
             [session = session_, number = number_] { session->abandon(number); });
}

http_body http_session_exchange::take_body() {
  return {std::exchange(request_.body, {}), std::move(request_.body_share)};
}

void http_session_exchange::advance(state from, state to, const char* call) {
  if (!state_.compare_exchange_strong(from, to))
    throw std::logic_error(
        std::string("http_exchange::") + call
        + " does not fit here: an answer is "
          "given once, and a stream is opened before and ended after its pieces");
}

void http_session_exchange::respond(int status, http_headers headers, std::string body) {
  advance(state::fresh, state::done, "respond");
  if (session_->core().stopped) return;
  asio::post(session_->executor(), [session = session_, number = number_, status,
                                    own = std::move(headers), text = std::move(body)]() mutable {
    session->answer(number, status, std::move(own), std::move(text));
  });
}

void http_session_exchange::start_stream(http_headers headers) {
  advance(state::fresh, state::streaming, "start_stream");
  if (session_->core().stopped) return;
  asio::post(session_->executor(),
             [session = session_, number = number_, own = std::move(headers)]() mutable {
               session->open_stream(number, std::move(own));
             });
}

void http_session_exchange::write(std::string chunk, std::function<void(bool)> written) {
  if (state_ != state::streaming) throw std::logic_error("http_exchange::write outside a stream");
  if (chunk.size() > session_->core().limits.stream_buffer_bytes)
    throw std::length_error("a piece of a stream is larger than "
                            + std::to_string(session_->core().limits.stream_buffer_bytes)
                            + " bytes");
  if (writing_.exchange(true))
    throw std::logic_error("http_exchange::write before the previous piece was written");
  auto report = [self = shared_from_this(), then = std::move(written)](bool ok) {
    self->writing_ = false;
    if (then) then(ok);
  };
  if (session_->core().stopped) {
    report(false);
    return;
  }
  asio::post(session_->executor(), [session = session_, number = number_, text = std::move(chunk),
                                    done = std::move(report)]() mutable {
    session->stream(number, std::move(text), std::move(done));
  });
}

void http_session_exchange::finish(bool close) {
  advance(state::streaming, state::done, "finish");
  if (session_->core().stopped) return;
  asio::post(session_->executor(),
             [session = session_, number = number_, close] { session->end_stream(number, close); });
}

void http_session_exchange::on_closed(std::function<void()> closed) {
  auto call = [session = session_, number = number_, fate = fate_,
               then = std::move(closed)]() mutable {
    if (fate->open)
      session->watch(number, std::move(then));
    else if (!fate->complete)
      then();
  };
  if (session_->core().stopped)
    call();
  else
    asio::post(session_->executor(), std::move(call));
}

} // namespace lamella::net
