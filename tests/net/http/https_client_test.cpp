// The client through TLS, and servers that it must not believe.
#include "net/http/client/http_client.hpp"
#include "net/http/sse.hpp"
#include "tests/net/http/http_session_fixture.hpp"
#include "tests/net/http/tls_client.hpp"

#include <cstdlib>
#include <thread>

using namespace lamella::net;
using namespace lamella::test;
using std::chrono::milliseconds;

namespace {

/// Only a broken program is waited for so long.
constexpr milliseconds timeout{300'000};

/// A server whose certificate those trust who are made in the lifetime of this.
struct trusted_server {
  certificate_folder folder;
  echo_server echo;
  trusted_server() : echo(patient_limits(), 1, (folder.make("server"), folder.identity("server"))) {
    trust("server");
  }
  ~trusted_server() { ::unsetenv("SSL_CERT_FILE"); }
  void trust(const std::string& name) const {
    ::setenv("SSL_CERT_FILE", folder.certificate(name).c_str(), 1);
  }
  std::string url(const std::string& host = "localhost") const {
    return "https://" + host + ":" + std::to_string(echo.port());
  }
};

/// What a call says that must fail for want of trust.
std::string distrust(const std::string& url) {
  try {
    http_client(parse_http_url(url)).get("/", timeout);
  } catch (const http_call_error& error) {
    CHECK(error.why == http_call_error::reason::trust);
    return error.what();
  }
  return "it was believed";
}

bool has(const std::string& text, const std::string& words) {
  CAPTURE(text);
  const bool found = text.find(words) != std::string::npos;
  CHECK(found);
  return found;
}

} // namespace

TEST_CASE("HTTPS: the client gets, posts and reads streams") {
  trusted_server server;
  http_client client(parse_http_url(server.url()), "lam_0123456789");
  CHECK(client.get("/a?b", timeout).body == "GET /a?b|");
  const std::string body(3 << 20, 'x');
  CHECK(client.post("/p", body, timeout).body == "POST /p?|" + body);

  constexpr int events = 300;
  std::thread source([&] {
    const auto exchange = server.echo.held.take();
    CHECK(exchange->request().headers.get("authorization") == "Bearer lam_0123456789");
    exchange->start_stream(sse_headers());
    for (int i = 0; i < events; ++i) CHECK(write_and_wait(exchange, sse_event(std::to_string(i))));
    CHECK(write_and_wait(exchange, std::string(sse_done)));
    exchange->finish();
  });
  int next = 0;
  client.stream(
      "/hold", "{}",
      [&](std::string_view data) {
        CHECK(data == std::to_string(next++));
        return true;
      },
      timeout);
  source.join();
  CHECK(next == events);
}

TEST_CASE("HTTPS: the client tells a stream that was cut, and an answer that does not come") {
  trusted_server server;
  http_client client(parse_http_url(server.url()));
  std::thread source([&] {
    const auto exchange = server.echo.held.take();
    exchange->start_stream(sse_headers());
    CHECK(write_and_wait(exchange, sse_event("1")));
  });
  CHECK_THROWS_WITH(client.stream(
                        "/hold", "{}", [](std::string_view) { return true; }, timeout),
                    doctest::Contains("closed the connection"));
  source.join();
  CHECK_THROWS_WITH(client.get("/hold", milliseconds(60)), doctest::Contains("took longer"));
}

TEST_CASE("HTTPS: the client believes nobody whom the system does not trust") {
  trusted_server server;
  has(distrust(server.url("127.0.0.1")), "IP address mismatch");
  server.folder.make("other");
  server.trust("other");
  has(distrust(server.url()), "self-signed certificate");
  server.trust("none");
  has(distrust(server.url()), "self-signed certificate");
  server.folder.make("old", -100);
  server.trust("old");
  server.echo.server.set_identity("public", server.folder.identity("old"));
  has(distrust(server.url()), "certificate has expired");
  CHECK(server.echo.server.counters().requests == 0);
}

TEST_CASE("HTTPS: the client tells a server that speaks another language") {
  trusted_server server;
  echo_server plain;
  has(distrust("https://localhost:" + std::to_string(plain.port())), "wrong version number");
  const http_reply reply =
      http_client(parse_http_url("http://localhost:" + std::to_string(server.echo.port())))
          .get("/", timeout);
  CHECK(reply.status == 400);
  has(reply.body, "https://");
}

TEST_CASE("HTTPS: many streams run on one thread of a client") {
  trusted_server server;
  constexpr int calls = 100;
  http_client_loop loop;
  int right = 0;
  std::vector<std::shared_ptr<http_call>> handles;
  for (int i = 0; i < calls; ++i) {
    http_call_request request;
    request.method = "POST";
    request.path = "/" + std::to_string(i);
    request.body = std::string(static_cast<size_t>(i) * 1'000, 'x');
    request.connect_timeout = request.idle_timeout = timeout;
    http_call_events events;
    events.on_done = [&right, expected = "POST " + request.path + "?|" + request.body](
                         const http_reply& reply) { right += reply.body == expected; };
    handles.push_back(loop.call(parse_http_url(server.url()), request, events));
  }
  loop.run();
  CHECK(right == calls);
}
