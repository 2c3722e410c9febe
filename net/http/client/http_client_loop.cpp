#include "net/http/client/http_client.hpp"

#include "net/http/client/http_client_stream.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include <array>
#include <set>

namespace lamella::net {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {
class running_call;
} // namespace

struct http_client_loop::impl {
  asio::io_context io;
  std::set<running_call*> calls;  ///< started and not yet over
  std::optional<tls_trust> trust; ///< from the first call on that asks for TLS
};

namespace {

/// One call, from resolving the name to the last byte. Every step has a deadline: `idle_` is set
/// again by each, `total_` once.
class running_call final : public http_call, public std::enable_shared_from_this<running_call> {
public:
  /// `trust`: where the URL asks for TLS, else nullptr.
  running_call(asio::io_context& io, std::set<running_call*>& calls, const tls_trust* trust,
               http_url url, http_call_request request, http_call_events events)
      : io_(io), calls_(calls), trust_(trust), url_(std::move(url)), request_(std::move(request)),
        events_(std::move(events)), resolver_(io), socket_(io), idle_(io), total_(io) {
    parser_.header_limit(64 << 10);
    parser_.body_limit(boost::none);
    calls_.insert(this);
  }

  void start() {
    total_.expires_after(request_.total_timeout);
    total_.async_wait([self = shared_from_this()](error_code ec) {
      if (!ec) self->timeout("the whole call", self->request_.total_timeout);
    });
    deadline(request_.connect_timeout, "connecting");
    error_code numeric;
    const auto address = asio::ip::make_address(url_.host, numeric);
    if (!numeric) {
      connect(std::array{tcp::endpoint(address, url_.port)});
      return;
    }
    resolver_.async_resolve(url_.host, std::to_string(url_.port),
                            [self = shared_from_this()](error_code ec, const auto& found) {
                              if (ec)
                                self->fail(http_call_error::reason::resolve,
                                           "cannot resolve " + self->url_.host + ": "
                                               + ec.message());
                              else
                                self->connect(found);
                            });
  }

  void abort() override {
    asio::post(io_, [weak = weak_from_this()] {
      if (const auto self = weak.lock())
        self->fail(http_call_error::reason::aborted, "the call was aborted");
    });
  }

  /// Ends without any callback: the loop goes away.
  void drop() {
    events_ = {};
    over();
  }

private:
  std::string where() const { return url_.host + ":" + std::to_string(url_.port); }

  void deadline(milliseconds time, const char* what) {
    idle_.expires_after(time);
    idle_.async_wait([self = shared_from_this(), time, what](error_code ec) {
      if (!ec && self->idle_.expiry() <= clock::now()) self->timeout(what, time);
    });
  }

  void timeout(const char* what, milliseconds time) {
    fail(http_call_error::reason::timeout, std::string(what) + " (" + where()
                                               + ") took longer than "
                                               + std::to_string(time.count()) + " ms");
  }

  void over() {
    over_ = true;
    calls_.erase(this);
    resolver_.cancel();
    idle_.cancel();
    total_.cancel();
    error_code ignored;
    socket_.close(ignored);
    if (stream_) stream_->socket().close();
  }

  void fail(http_call_error::reason why, const std::string& what) {
    if (over_) return;
    over();
    const auto events = std::exchange(events_, {});
    if (events.on_error) events.on_error({why, what});
  }

  template <class Endpoints> void connect(const Endpoints& endpoints) {
    if (over_) return;
    asio::async_connect(socket_, endpoints,
                        [self = shared_from_this()](error_code ec, const tcp::endpoint&) {
                          if (self->over_) return;
                          if (ec)
                            self->fail(http_call_error::reason::connect,
                                       "cannot connect to " + self->where() + ": " + ec.message());
                          else
                            self->connected();
                        });
  }

  void connected() {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    stream_.emplace(std::move(socket_), trust_, url_.host);
    if (trust_ == nullptr) {
      send();
      return;
    }
    deadline(request_.connect_timeout, "the TLS handshake");
    stream_->socket().handshake([self = shared_from_this()](const std::string& why) {
      if (self->over_) return;
      if (why.empty())
        self->send();
      else
        self->fail(http_call_error::reason::trust, "no TLS with " + self->where() + ": " + why);
    });
  }

  void send() {
    const bool brackets = url_.host.find(':') != std::string::npos;
    wire_ = request_.method + " " + url_.prefix + request_.path
            + " HTTP/1.1\r\nhost: " + (brackets ? "[" + url_.host + "]" : url_.host) + ":"
            + std::to_string(url_.port) + "\r\nconnection: close\r\n";
    if (!request_.headers.find("accept"))
      wire_ += "accept: application/json, text/event-stream\r\n";
    if (!request_.body.empty() && !request_.headers.find("content-type"))
      wire_ += "content-type: application/json\r\n";
    if (!request_.body.empty() || request_.method == "POST")
      wire_ += "content-length: " + std::to_string(request_.body.size()) + "\r\n";
    for (const auto& [name, value] : request_.headers) wire_ += name + ": " + value + "\r\n";
    wire_ += "\r\n" + request_.body;
    deadline(request_.idle_timeout, "sending the request");
    asio::async_write(*stream_, asio::buffer(wire_),
                      [self = shared_from_this()](error_code ec, size_t) { self->sent(ec); });
  }

  void sent(error_code ec) {
    if (over_) return;
    // A server may refuse and close before it has read everything; its answer may still be there.
    if (!ec && events_.on_sent) events_.on_sent();
    deadline(request_.idle_timeout, "waiting for the answer");
    if (request_.method == "HEAD") parser_.skip(true);
    http::async_read_header(
        *stream_, buffer_, parser_,
        [self = shared_from_this()](error_code failed, size_t) { self->got_head(failed); });
  }

  void got_head(error_code ec) {
    if (over_) return;
    if (ec) {
      read_failed(ec);
      return;
    }
    const auto& message = parser_.get();
    reply_.status = static_cast<int>(message.result_int());
    for (const auto& field : message)
      reply_.headers.add(std::string(field.name_string()), std::string(field.value()));
    if (events_.on_head) events_.on_head(reply_.status, reply_.headers);
    read_body();
  }

  void read_body() {
    if (over_) return;
    if (parser_.is_done()) {
      done();
      return;
    }
    deadline(request_.idle_timeout, "waiting for more of the answer");
    parser_.get().body().data = piece_.data();
    parser_.get().body().size = piece_.size();
    http::async_read_some(
        *stream_, buffer_, parser_,
        [self = shared_from_this()](error_code ec, size_t) { self->got_body(ec); });
  }

  void got_body(error_code ec) {
    if (over_) return;
    if (ec == http::error::need_buffer) ec = {};
    const size_t count = piece_.size() - parser_.get().body().size;
    const std::string_view bytes(piece_.data(), count);
    if (!bytes.empty()) {
      const bool good = reply_.status >= 200 && reply_.status < 300;
      if (good && events_.on_data) {
        events_.on_data(bytes);
        if (over_) return;
      } else if (reply_.body.size() + bytes.size() > request_.body_bytes_max) {
        fail(http_call_error::reason::protocol, "the answer of " + where() + " is larger than "
                                                    + std::to_string(request_.body_bytes_max)
                                                    + " bytes");
        return;
      } else {
        reply_.body += bytes;
      }
    }
    if (ec) {
      read_failed(ec);
      return;
    }
    read_body();
  }

  void read_failed(error_code ec) {
    const bool cut = ec == http::error::end_of_stream || ec == http::error::partial_message
                     || ec == asio::error::eof || ec == asio::error::connection_reset
                     || ec == asio::error::broken_pipe;
    if (cut)
      fail(http_call_error::reason::cut, where()
                                             + " closed the connection before the end of its "
                                               "answer");
    else
      fail(http_call_error::reason::protocol,
           "the answer of " + where() + " is broken: " + ec.message());
  }

  void done() {
    over();
    const auto events = std::exchange(events_, {});
    if (events.on_done) events.on_done(reply_);
  }

  asio::io_context& io_;
  std::set<running_call*>& calls_;
  const tls_trust* const trust_;
  const http_url url_;
  http_call_request request_;
  http_call_events events_;
  tcp::resolver resolver_;
  tcp::socket socket_; ///< until it is connected
  std::optional<http_client_stream> stream_;
  asio::steady_timer idle_;
  asio::steady_timer total_;
  boost::beast::flat_buffer buffer_;
  http::response_parser<http::buffer_body> parser_;
  std::array<char, 16 << 10> piece_;
  std::string wire_;
  http_reply reply_;
  bool over_ = false;
};

/// What the caller gets: keeps the loop's memory, so that abort() is safe at any time.
class call_handle final : public http_call {
public:
  call_handle(std::shared_ptr<void> loop, std::weak_ptr<running_call> call)
      : loop_(std::move(loop)), call_(std::move(call)) {}
  void abort() override {
    if (const auto call = call_.lock()) call->abort();
  }

private:
  std::shared_ptr<void> loop_;
  std::weak_ptr<running_call> call_;
};

} // namespace

http_client_loop::http_client_loop() : impl_(std::make_shared<impl>()) {}

http_client_loop::~http_client_loop() {
  // Pending operations hold their calls; ending them lets go of everything.
  const auto calls = impl_->calls;
  for (running_call* call : calls) call->drop();
  impl_->io.restart();
  impl_->io.poll();
}

std::shared_ptr<http_call> http_client_loop::call(const http_url& url, http_call_request request,
                                                  http_call_events events) {
  if (url.tls && !impl_->trust) impl_->trust.emplace();
  const auto call =
      std::make_shared<running_call>(impl_->io, impl_->calls, url.tls ? &*impl_->trust : nullptr,
                                     url, std::move(request), std::move(events));
  call->start();
  return std::make_shared<call_handle>(impl_, call);
}

void http_client_loop::at(clock::time_point time, std::function<void()> f) {
  const auto timer = std::make_shared<asio::steady_timer>(impl_->io, time);
  timer->async_wait([timer, call = std::move(f)](error_code ec) {
    if (!ec) call();
  });
}

void http_client_loop::run() {
  impl_->io.restart();
  impl_->io.run();
}

void http_client_loop::stop() { impl_->io.stop(); }

} // namespace lamella::net
