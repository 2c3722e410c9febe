// The client against our own server, and against servers that misbehave.
#include "net/http/client/http_client.hpp"
#include "net/http/sse.hpp"
#include "tests/net/http/http_fixture.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using namespace lamella::net;
using namespace lamella::test;
using std::chrono::milliseconds;

namespace {

/// Only a broken program is waited for so long.
constexpr milliseconds timeout{300'000};

http_url local(uint16_t port) { return parse_http_url("127.0.0.1:" + std::to_string(port)); }

/// Accepts one connection at a time, reads a request head, sends bytes and closes.
class rude_server {
public:
  explicit rude_server(std::string answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 8);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (;;) {
        const int fd = ::accept(listener_, nullptr, nullptr);
        if (fd < 0) return;
        std::string seen;
        char buffer[4096];
        while (seen.find("\r\n\r\n") == std::string::npos) {
          const ssize_t count = ::recv(fd, buffer, sizeof buffer, 0);
          if (count <= 0) break;
          seen.append(buffer, static_cast<size_t>(count));
        }
        if (!answer_.empty()) ::send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL);
        ::shutdown(fd, SHUT_WR);
        while (::recv(fd, buffer, sizeof buffer, 0) > 0) {
        }
        ::close(fd);
      }
    });
  }
  ~rude_server() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  uint16_t port() const { return port_; }

private:
  std::string answer_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

template <class F> http_call_error::reason reason_of(F&& f) {
  try {
    f();
  } catch (const http_call_error& error) {
    return error.why;
  }
  FAIL("no error");
  return {};
}

/// Answers with `events` events and an end mark, each written when the one before was taken.
struct stream_source : std::enable_shared_from_this<stream_source> {
  stream_source(http_exchange_ptr to, int count) : exchange(std::move(to)), events(count) {}

  void next() {
    if (sent > events) {
      exchange->finish();
      return;
    }
    const std::string piece =
        sent == events ? std::string(sse_done) : sse_event("{\"i\":" + std::to_string(sent) + "}");
    ++sent;
    exchange->write(piece, [self = shared_from_this()](bool ok) {
      if (ok) self->next();
    });
  }

  http_exchange_ptr exchange;
  int events;
  int sent = 0;
};

void serve_stream(const http_exchange_ptr& exchange, int events) {
  exchange->start_stream(sse_headers());
  std::make_shared<stream_source>(exchange, events)->next();
}

} // namespace

TEST_CASE("URLs of services are taken apart or refused with a reason") {
  const auto url = parse_http_url("http://example.org:8001/base/v2/");
  CHECK(url.host == "example.org");
  CHECK(url.port == 8001);
  CHECK(url.prefix == "/base/v2");
  CHECK(parse_http_url("localhost:80").host == "localhost");
  CHECK(parse_http_url("http://[::1]:81").host == "::1");
  CHECK(parse_http_url("http://[::1]").port == 80);
  CHECK(parse_http_url("http://h/").prefix.empty());
  CHECK_FALSE(url.tls);
  CHECK(parse_http_url("https://h/v1").tls);
  CHECK(parse_http_url("https://h/v1").port == 443);
  CHECK(parse_http_url("https://[::1]:8443").port == 8443);
  for (const char* bad : {"", "http://", "https://", "ftp://x", "http://x:0", "http://x:65536",
                          "http://x:", "http://x:8a", "http://a b", "http://[::1", "http://[::1]x",
                          "http://u@h", "http://h/?q", "http://é"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_http_url(bad), std::invalid_argument);
  }
}

TEST_CASE("the blocking client gets and posts") {
  echo_server echo;
  http_client client(local(echo.port()), "lam_0123456789");
  const http_reply get = client.get("/a?b", timeout);
  CHECK(get.status == 200);
  CHECK(get.body == "GET /a?b|");
  CHECK(get.headers.get("X-Lamella-Version") == "9.9");
  CHECK(client.post("/p", "{}", timeout).body == "POST /p?|{}");
  CHECK(client.get("/throw", timeout).status == 500);
  CHECK(client.post("/p", std::string(3 << 20, 'x'), timeout).body.size() == (3 << 20) + 9);

  std::thread caller([&] { client.post("/hold", "{}", timeout); });
  const auto exchange = echo.held.take();
  CHECK(exchange->request().headers.get("authorization") == "Bearer lam_0123456789");
  CHECK(exchange->request().headers.get("content-type") == "application/json");
  exchange->respond(204, {}, "");
  caller.join();
}

TEST_CASE("a stream is handed over event by event") {
  echo_server echo;
  http_client client(local(echo.port()));
  std::thread server([&] { serve_stream(echo.held.take(), 1000); });
  int next = 0;
  const http_reply reply = client.stream(
      "/hold", "{}",
      [&](std::string_view data) {
        CHECK(data == "{\"i\":" + std::to_string(next++) + "}");
        return true;
      },
      timeout);
  server.join();
  CHECK(reply.status == 200);
  CHECK(next == 1000);
}

TEST_CASE("a refused stream gives status and body instead of events") {
  echo_server echo;
  http_client client(local(echo.port()));
  std::thread server([&] { echo.held.take()->respond(400, {}, "no"); });
  const http_reply reply = client.stream(
      "/hold", "{}", [](std::string_view) { return true; }, timeout);
  server.join();
  CHECK(reply.status == 400);
  CHECK(reply.body == "no");
}

TEST_CASE("stopping a stream early closes the connection, which the server notices") {
  patient_limits limits;
  limits.half_close_time = milliseconds(20);
  echo_server echo(limits);
  http_client client(local(echo.port()));
  inbox<int> closed;
  std::thread server([&] {
    const auto exchange = echo.held.take();
    exchange->on_closed([&] { closed.put(1); });
    exchange->start_stream(sse_headers());
    exchange->write(sse_event("1"), {});
    closed.take();
  });
  CHECK(client
            .stream(
                "/hold", "{}", [](std::string_view) { return false; }, timeout)
            .status
        == 200);
  server.join();
  // An exception of the callback comes out of the call.
  std::thread again([&] { serve_stream(echo.held.take(), 3); });
  CHECK_THROWS_AS(
      client.stream(
          "/hold", "{}", [](std::string_view) -> bool { throw std::logic_error("x"); }, timeout),
      std::logic_error);
  again.join();
}

TEST_CASE("abort from another thread ends the call") {
  echo_server echo;
  http_client client(local(echo.port()));
  std::thread aborter([&] {
    const auto exchange = echo.held.take();
    client.abort();
  });
  CHECK(reason_of([&] { client.get("/hold", timeout); }) == http_call_error::reason::aborted);
  aborter.join();
  CHECK(client.get("/a", timeout).status == 200); // good for the next call
}

TEST_CASE("every way a call can fail is told apart") {
  using reason = http_call_error::reason;
  uint16_t dead = 0;
  {
    rude_server gone("");
    dead = gone.port();
  }
  CHECK(reason_of([&] { http_client(local(dead)).get("/", timeout); }) == reason::connect);
  echo_server echo;
  CHECK(reason_of([&] { http_client(local(echo.port())).get("/hold", milliseconds(60)); })
        == reason::timeout);
  const std::pair<std::string, reason> table[] = {
      {"", reason::cut},
      {"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab", reason::cut},
      {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab", reason::cut},
      {"HTTP/1.1 2x0 OK\r\n\r\n", reason::protocol},
      {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", reason::protocol},
      {"nonsense\r\n\r\n", reason::protocol},
      {"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n", reason::cut},
  };
  for (const auto& [answer, why] : table) {
    CAPTURE(answer);
    rude_server server(answer);
    http_client client(local(server.port()));
    CHECK(reason_of([&] {
            client.stream(
                "/", "{}", [](std::string_view) { return true; }, timeout);
          })
          == why);
  }
  rude_server large("HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n" + std::string(2000, 'x'));
  http_call_request request;
  request.body_bytes_max = 1000;
  CHECK(reason_of([&] { http_client(local(large.port())).call(request); }) == reason::protocol);
}

TEST_CASE("a stream without chunks that ends with its end mark is complete") {
  rude_server server("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n"
                     "data: [DONE]\n\n");
  http_client client(local(server.port()));
  int events = 0;
  client.stream(
      "/", "{}", [&](std::string_view) { return ++events > 0; }, timeout);
  CHECK(events == 1);
}

TEST_CASE("hundreds of streams run on one thread") {
  constexpr int streams = 300;
  constexpr int events = 50;
  echo_server echo;
  std::thread server([&] {
    for (int i = 0; i < streams; ++i) serve_stream(echo.held.take(), events);
  });
  http_client_loop loop;
  int done = 0, failed = 0, seen = 0;
  std::vector<std::unique_ptr<sse_reader>> readers;
  const auto begin = [&](int) {
    readers.push_back(std::make_unique<sse_reader>([&](std::string_view) { ++seen; }));
    http_call_request request;
    request.method = "POST";
    request.path = "/hold";
    request.body = "{}";
    http_call_events e;
    e.on_data = [reader = readers.back().get()](std::string_view bytes) { reader->feed(bytes); };
    e.on_done = [&](const http_reply&) { ++done; };
    e.on_error = [&](const http_call_error&) { ++failed; };
    loop.call(local(echo.port()), request, e);
  };
  const auto now = std::chrono::steady_clock::now();
  for (int i = 0; i < streams; ++i)
    loop.at(now + std::chrono::microseconds(i * 50), [&, i] { begin(i); });
  loop.run();
  server.join();
  CHECK(done == streams);
  CHECK(failed == 0);
  CHECK(seen == streams * (events + 1)); // the end mark is an event here
}

TEST_CASE("a loop may go away with calls under way") {
  echo_server echo;
  std::shared_ptr<http_call> call;
  {
    http_client_loop loop;
    http_call_request request;
    request.path = "/hold";
    http_call_events events;
    events.on_sent = [&] { loop.stop(); };
    events.on_error = [](const http_call_error&) { FAIL("called after the end of the loop"); };
    call = loop.call(local(echo.port()), request, events);
    loop.at(std::chrono::steady_clock::now() + std::chrono::hours(1), [] {});
    loop.run();
  }
  call->abort();
}
