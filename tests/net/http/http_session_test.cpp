// Connections over time: keep-alive, limits, deadlines.
#include "tests/net/http/http_session_fixture.hpp"

#include <atomic>
#include <thread>

using namespace lamella::net;
using namespace lamella::test;
using std::chrono::milliseconds;

TEST_CASE("a connection serves many requests, one after another") {
  echo_server echo;
  raw_client client(echo.port());
  for (int i = 0; i < 50; ++i) {
    client.send("POST /n HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    const std::string answer = client.read_answer();
    CHECK(answer.ends_with("POST /n?|abc"));
    CHECK(keeps(answer));
  }
  CHECK(echo.server.counters().connections_accepted == 1);
  CHECK(echo.server.counters().requests == 50);
}

TEST_CASE("the last request a connection may carry says so") {
  patient_limits limits;
  limits.requests_per_connection = 2;
  echo_server echo(limits);
  raw_client client(echo.port());
  client.send(get);
  CHECK(keeps(client.read_answer()));
  client.send(get);
  CHECK_FALSE(keeps(client.read_answer()));
  CHECK(client.read_all().empty());
}

TEST_CASE("HTTP/1.0 connections end after the answer unless asked to stay") {
  echo_server echo;
  CHECK(status_of(echo.exchange("GET / HTTP/1.0\r\n\r\n")) == 200);
  raw_client client(echo.port());
  client.send("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
  CHECK(keeps(client.read_answer()));
  client.send("GET / HTTP/1.0\r\n\r\n");
  CHECK_FALSE(keeps(client.read_answer()));
}

TEST_CASE("a pipelined request is not served and ends the connection after the first answer") {
  echo_server echo;
  const std::string both = echo.exchange(get + get);
  CHECK(both.find("HTTP/1.1 200") == 0);
  CHECK(both.find("HTTP/1.1 ", 1) == std::string::npos);
  CHECK_FALSE(keeps(both));
  CHECK(echo.server.counters().requests == 1);

  // Also when the second comes while the first is being answered.
  raw_client client(echo.port());
  client.send(get_hold);
  const auto exchange = echo.held.take();
  client.send(get);
  exchange->start_stream({});
  CHECK(write_and_wait(exchange, "x"));
  exchange->finish();
  CHECK(client.read_all().ends_with("1\r\nx\r\n0\r\n\r\n"));
  CHECK(echo.server.counters().requests == 2);
}

TEST_CASE("a flood of bytes while an answer is being made cuts the connection") {
  echo_server echo;
  raw_client client(echo.port());
  client.send(get_hold);
  const auto exchange = echo.held.take();
  inbox<int> closed;
  exchange->on_closed([&] { closed.put(1); });
  client.send(std::string(1 << 20, 'x'));
  closed.take();
  CHECK_FALSE(exchange->open());
}

TEST_CASE("HEAD gets the head of GET and no body") {
  echo_server echo;
  raw_client client(echo.port());
  client.send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(client.read_until("\r\n\r\n").find("content-length: 9\r\n") != std::string::npos);
  client.send(get);
  CHECK(client.read_answer().ends_with("GET /a?|"));
}

TEST_CASE("half requests are answered with 400 and reach no handler") {
  const std::string request = "POST /n HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
  for (size_t size = 1; size < request.size(); ++size) {
    CAPTURE(size);
    echo_server echo;
    raw_client client(echo.port());
    client.send(std::string_view(request).substr(0, size));
    client.half_close();
    CHECK(status_of(client.read_all()) == 400);
    CHECK(echo.server.counters().requests == 0);
  }
}

TEST_CASE("a request head that does not come to its end in time gets 408") {
  patient_limits limits;
  limits.header_time = milliseconds(60);
  echo_server echo(limits);
  raw_client silent(echo.port());
  CHECK(silent.read_all().empty());
  // A client that stood still for longer than that before its first byte is a silent one, too.
  std::string answer;
  while (answer.empty()) answer = echo.exchange("GET / HTTP/1.1\r\nHost: x\r\n");
  CHECK(status_of(answer) == 408);

  std::unique_ptr<raw_client> again;
  for (answer.clear(); answer.empty(); answer = again->read_answer()) {
    again = std::make_unique<raw_client>(echo.port());
    again->send(get);
  }
  CHECK(status_of(answer) == 200);
  again->send("G");
  CHECK(status_of(again->read_all()) == 408);
}

TEST_CASE("a body that takes too long or comes too slowly gets 408") {
  patient_limits limits;
  limits.body_time = milliseconds(60);
  echo_server echo(limits);
  const std::string begin = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc";
  CHECK(status_of(echo.exchange(begin)) == 408);

  patient_limits slow;
  slow.body_rate_after = milliseconds(40);
  echo_server strict(slow);
  const std::string answer = strict.exchange(begin);
  CHECK(status_of(answer) == 408);
  CHECK(answer.find("too slowly") != std::string::npos);
}

TEST_CASE("an idle connection is closed without a word") {
  patient_limits limits;
  limits.idle_time = milliseconds(40);
  echo_server echo(limits);
  raw_client client(echo.port());
  client.send(get);
  CHECK(keeps(client.read_answer()));
  CHECK(client.read_all().empty());
}

TEST_CASE("connections over the limits are told so") {
  patient_limits limits;
  limits.connections = 1;
  echo_server echo(limits);
  {
    raw_client first(echo.port());
    first.send(get);
    CHECK(status_of(first.read_answer()) == 200);
    const std::string answer = echo.exchange(get);
    CHECK(status_of(answer) == 503);
    CHECK(answer.find("retry-after: ") != std::string::npos);
    CHECK(answer.find("(http.connections_max)") != std::string::npos);
    CHECK(echo.server.counters().connections_refused == 1);
    first.send("GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    CHECK(status_of(first.read_all()) == 200);
  }
  CHECK(status_of(echo.exchange(get + "x")) == 200);

  patient_limits per_address;
  per_address.connections_per_address = 1;
  echo_server other(per_address);
  raw_client first(other.port());
  first.send(get);
  first.read_answer();
  const std::string answer = other.exchange(get);
  CHECK(status_of(answer) == 429);
  CHECK(answer.find("this address has too many connections") != std::string::npos);
  CHECK(answer.find("(http.connections_per_address_max)") != std::string::npos);
}

TEST_CASE("connections of one listener take no place of another one") {
  for (const bool of_one_address : {false, true}) {
    CAPTURE(of_one_address);
    http_settings settings;
    settings.limits = patient_limits{};
    (of_one_address ? settings.limits.connections_per_address : settings.limits.connections) = 1;
    const auto handler = [](const http_exchange_ptr& e) { e->respond(200, {}, "x"); };
    http_server server{settings,
                       {{"public", "127.0.0.1", 0, handler}, {"admin", "127.0.0.1", 0, handler}}};
    server.start();
    raw_client client(server.port("public")), more(server.port("public"));
    client.send(get);
    CHECK(status_of(client.read_answer()) == 200);
    const int refused = of_one_address ? 429 : 503;
    CHECK(status_of(more.read_answer()) == refused);
    raw_client operators(server.port("admin")), next(server.port("admin"));
    operators.send(get);
    CHECK(status_of(operators.read_answer()) == 200);
    CHECK(status_of(next.read_answer()) == refused);
    CHECK(server.counters().connections_refused == 2);
  }
}

TEST_CASE("a handler that throws or drops the request gives 500") {
  echo_server echo;
  for (const char* path : {"/throw", "/drop"}) {
    raw_client client(echo.port());
    client.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\nX-Request-Id: abc\r\n\r\n");
    const std::string answer = client.read_answer();
    CHECK(status_of(answer) == 500);
    CHECK(answer.find("\r\nx-request-id: abc\r\n") != std::string::npos);
    CHECK(answer.find("\"type\":\"server_error\"") != std::string::npos);
    client.send(get); // the connection is still good
    CHECK(status_of(client.read_answer()) == 200);
  }
}

TEST_CASE("a handler that never answers is given up") {
  patient_limits limits;
  limits.answer_time = milliseconds(60);
  echo_server echo(limits);
  raw_client client(echo.port());
  client.send(get_hold);
  const auto exchange = echo.held.take();
  inbox<int> closed;
  exchange->on_closed([&] { closed.put(1); });
  CHECK(status_of(client.read_all()) == 500);
  closed.take();
  exchange->respond(200, {}, "too late"); // ignored
}

TEST_CASE("request ids are taken over when fit to print, else made") {
  echo_server echo;
  const auto id_of = [&](const std::string& id) {
    const std::string answer = echo.exchange("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                             "X-Request-Id: "
                                             + id + "\r\n\r\n");
    const size_t at = answer.find("x-request-id: ") + 14;
    return answer.substr(at, answer.find('\r', at) - at);
  };
  CHECK(id_of("my-id_1") == "my-id_1");
  CHECK(id_of("a b").starts_with("req-"));
  CHECK(id_of("\xC3\xA9").starts_with("req-"));
  CHECK(id_of(std::string(129, 'a')).size() == 28);
  CHECK(id_of(std::string(128, 'a')).size() == 128);
}

TEST_CASE("an answer is given once and in the right order") {
  echo_server echo;
  raw_client client(echo.port());
  client.send(get_hold);
  const auto exchange = echo.held.take();
  CHECK_THROWS_AS(exchange->write("x", {}), std::logic_error);
  CHECK_THROWS_AS(exchange->finish(), std::logic_error);
  exchange->respond(200, {}, "x");
  CHECK_THROWS_AS(exchange->respond(200, {}, "y"), std::logic_error);
  CHECK_THROWS_AS(exchange->start_stream({}), std::logic_error);
  CHECK(client.read_answer().ends_with("\r\n\r\nx"));
}
