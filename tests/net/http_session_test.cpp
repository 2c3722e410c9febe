// Connections over time: keep-alive, limits, deadlines, disconnects, streams, shutdown.
#include "tests/net/http_fixture.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using namespace lamella::net;
using namespace lamella::test;
using std::chrono::milliseconds;

namespace {

const std::string get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
const std::string get_hold = "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n";

bool keeps(const std::string& answer) {
  return answer.find("\r\nconnection: keep-alive\r\n") != std::string::npos;
}

/// Takes chunked framing apart, as far as it came.
std::string unchunked(std::string_view wire) {
  std::string body;
  while (!wire.empty()) {
    const size_t line = wire.find("\r\n");
    const size_t size = std::stoul(std::string(wire.substr(0, line)), nullptr, 16);
    if (size == 0) return body + "$";
    body += wire.substr(line + 2, size);
    wire.remove_prefix(line + 2 + size + 2);
  }
  return body;
}

/// Writes one piece and waits for what became of it.
bool write_and_wait(const http_exchange_ptr& exchange, std::string piece) {
  inbox<bool> written;
  exchange->write(std::move(piece), [&](bool ok) { written.put(ok); });
  return written.take();
}

} // namespace

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
  http_limits limits;
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
  http_limits limits;
  limits.header_time = milliseconds(60);
  echo_server echo(limits);
  raw_client client(echo.port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n");
  CHECK(status_of(client.read_all()) == 408);
  raw_client silent(echo.port());
  CHECK(silent.read_all().empty());

  raw_client again(echo.port());
  again.send(get);
  CHECK(status_of(again.read_answer()) == 200);
  again.send("G");
  CHECK(status_of(again.read_all()) == 408);
}

TEST_CASE("a body that takes too long or comes too slowly gets 408") {
  http_limits limits;
  limits.body_time = milliseconds(60);
  echo_server echo(limits);
  const std::string begin = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc";
  CHECK(status_of(echo.exchange(begin)) == 408);

  http_limits slow;
  slow.body_rate_after = milliseconds(40);
  echo_server strict(slow);
  const std::string answer = strict.exchange(begin);
  CHECK(status_of(answer) == 408);
  CHECK(answer.find("too slowly") != std::string::npos);
}

TEST_CASE("an idle connection is closed without a word") {
  http_limits limits;
  limits.idle_time = milliseconds(40);
  echo_server echo(limits);
  raw_client client(echo.port());
  client.send(get);
  CHECK(keeps(client.read_answer()));
  CHECK(client.read_all().empty());
}

TEST_CASE("connections over the limits are told so") {
  http_limits limits;
  limits.connections = 1;
  echo_server echo(limits);
  {
    raw_client first(echo.port());
    first.send(get);
    CHECK(status_of(first.read_answer()) == 200);
    const std::string answer = echo.exchange(get);
    CHECK(status_of(answer) == 503);
    CHECK(answer.find("retry-after: ") != std::string::npos);
    CHECK(echo.server.counters().connections_refused == 1);
    first.send("GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    CHECK(status_of(first.read_all()) == 200);
  }
  CHECK(status_of(echo.exchange(get + "x")) == 200);

  http_limits per_address;
  per_address.connections_per_address = 1;
  echo_server other(per_address);
  raw_client first(other.port());
  first.send(get);
  first.read_answer();
  CHECK(status_of(other.exchange(get)) == 429);
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
  http_limits limits;
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

TEST_CASE("a stream arrives piece by piece and the connection goes on") {
  echo_server echo;
  raw_client client(echo.port());
  for (int round = 0; round < 3; ++round) {
    client.send(get_hold);
    const auto exchange = echo.held.take();
    exchange->start_stream({{"content-type", "text/event-stream"}});
    const std::string head = client.read_until("\r\n\r\n");
    CHECK(head.find("\r\ntransfer-encoding: chunked\r\n") != std::string::npos);
    CHECK(keeps(head));
    CHECK(write_and_wait(exchange, "data: 1\n\n"));
    CHECK(client.read_until("\n\n\r\n") == "9\r\ndata: 1\n\n\r\n");
    CHECK(write_and_wait(exchange, "")); // writes nothing, in particular no end mark
    exchange->write("data: 22\n\n", {});
    exchange->finish(); // waits for the piece
    CHECK(unchunked(client.read_until("0\r\n\r\n")) == "data: 22\n\n$");
  }
  CHECK(echo.server.counters().disconnects == 0);
}

TEST_CASE("one piece of a stream is outstanding at a time, and none is huge") {
  http_limits limits;
  limits.stream_buffer_bytes = 8 << 20;
  echo_server echo(limits);
  raw_client client(echo.port(), 4096);
  client.send(get_hold);
  const auto exchange = echo.held.take();
  exchange->start_stream({});
  CHECK_THROWS_AS(exchange->write(std::string((8 << 20) + 1, 'x'), {}), std::length_error);
  inbox<bool> written;
  exchange->write(std::string(8 << 20, 'x'), [&](bool ok) { written.put(ok); });
  CHECK_THROWS_AS(exchange->write("y", {}), std::logic_error);
  client.read_until("\r\n\r\n");
  CHECK(client.read_until("x\r\n").size() > (8 << 20));
  CHECK(written.take());
  CHECK(write_and_wait(exchange, "y"));
  exchange->finish();
}

TEST_CASE("HTTP/1.0 clients get streams without chunks, ended by the connection") {
  echo_server echo;
  raw_client client(echo.port());
  client.send("GET /hold HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto exchange = echo.held.take();
  exchange->start_stream({});
  CHECK(write_and_wait(exchange, "abc"));
  exchange->finish();
  const std::string answer = client.read_all();
  CHECK(answer.ends_with("\r\n\r\nabc"));
  CHECK(answer.find("chunked") == std::string::npos);
  CHECK_FALSE(keeps(answer));
}

TEST_CASE("a stream ended with close or dropped ends the connection, the latter without end mark") {
  echo_server echo;
  {
    raw_client client(echo.port());
    client.send(get_hold);
    const auto exchange = echo.held.take();
    exchange->start_stream({});
    exchange->write("abc", {});
    exchange->finish(true);
    CHECK(client.read_all().ends_with("3\r\nabc\r\n0\r\n\r\n"));
  }
  for (const bool abort : {false, true}) {
    raw_client client(echo.port());
    client.send(get_hold);
    auto exchange = echo.held.take();
    exchange->start_stream({});
    CHECK(write_and_wait(exchange, "abc"));
    if (abort) exchange->abort();
    exchange.reset();
    CHECK(client.read_all().ends_with("3\r\nabc\r\n"));
  }
}

TEST_CASE("a client that leaves is noticed while it waits and while it streams") {
  http_limits limits;
  limits.half_close_time = milliseconds(50);
  echo_server echo(limits);
  for (const bool streaming : {false, true})
    for (const bool reset : {false, true}) {
      CAPTURE(streaming);
      CAPTURE(reset);
      raw_client client(echo.port());
      client.send(get_hold);
      const auto exchange = echo.held.take();
      inbox<int> closed;
      exchange->on_closed([&] { closed.put(1); });
      if (streaming) {
        exchange->start_stream({});
        CHECK(write_and_wait(exchange, "abc"));
        client.read_until("abc\r\n");
      }
      CHECK(exchange->open());
      reset ? client.reset() : client.close();
      closed.take();
      CHECK_FALSE(exchange->open());
      if (streaming) {
        CHECK_FALSE(write_and_wait(exchange, "more"));
        exchange->finish();
      } else {
        exchange->respond(200, {}, "nobody listens");
      }
      // Asked for afterwards, it is told at once.
      exchange->on_closed([&] { closed.put(2); });
      CHECK(closed.take() == 2);
      CHECK(closed.size() == 0);
    }
  CHECK(echo.server.counters().disconnects == 4);
  CHECK(echo.server.counters().exchanges_open == 0);
}

TEST_CASE("a client that only closed its sending side still gets a quick answer") {
  http_limits limits;
  limits.half_close_time = milliseconds(10'000);
  echo_server echo(limits);
  raw_client client(echo.port());
  client.send(get_hold);
  const auto exchange = echo.held.take();
  inbox<int> closed;
  exchange->on_closed([&] { closed.put(1); });
  client.half_close();
  exchange->respond(200, {}, "quick");
  CHECK(client.read_all().ends_with("\r\n\r\nquick"));
  CHECK(closed.size() == 0);
}

TEST_CASE("on_closed is not called after a complete answer") {
  echo_server echo;
  raw_client client(echo.port());
  client.send(get_hold);
  const auto exchange = echo.held.take();
  std::atomic<int> closed{0};
  exchange->on_closed([&] { ++closed; });
  exchange->respond(200, {}, "x");
  client.read_answer();
  exchange->on_closed([&] { ++closed; });
  CHECK(echo.server.stop(milliseconds(5'000)));
  CHECK(closed == 0);
}

TEST_CASE("a reader that never reads costs little and is cut after the stall time") {
  http_limits limits;
  limits.stall_time = milliseconds(150);
  echo_server echo(limits);
  raw_client client(echo.port(), 4096);
  client.send(get_hold);
  const auto exchange = echo.held.take();
  inbox<int> closed;
  exchange->on_closed([&] { closed.put(1); });
  exchange->start_stream({});
  size_t taken = 0;
  // The owner renders the next piece only when the previous one was taken.
  while (write_and_wait(exchange, std::string(16 << 10, 'x'))) {
    taken += 16 << 10;
    REQUIRE(taken < (4 << 20));
  }
  MESSAGE("bytes the kernel took for a reader that never reads: " << taken);
  closed.take();
  CHECK(echo.server.counters().stalls == 1);
  CHECK(echo.server.counters().exchanges_open == 0);
}

TEST_CASE("a slow reader of a large answer gets all of it") {
  echo_server echo;
  raw_client client(echo.port(), 4096);
  client.send(get_hold);
  std::string body(3 << 20, 'x');
  body.back() = 'y';
  echo.held.take()->respond(200, {}, body);
  CHECK(client.read_answer().ends_with(body));
  client.send(get);
  CHECK(status_of(client.read_answer()) == 200);
}

TEST_CASE("a port that is in use is an error that says so") {
  echo_server echo;
  http_server second({}, {{"admin", "127.0.0.1", 0, [](auto) {}},
                          {"public", "127.0.0.1", echo.port(), [](auto) {}}});
  try {
    second.start();
    FAIL("listened twice on one port");
  } catch (const http_listen_error& error) {
    const std::string what = error.what();
    CHECK(what.find("127.0.0.1:" + std::to_string(echo.port())) != std::string::npos);
    CHECK(what.find("in use") != std::string::npos);
  }
  CHECK_THROWS_AS(http_server({}, {{"x", "not-an-address", 0, {}}}).start(), http_listen_error);
}

TEST_CASE("two listeners have ports, handlers and names of their own") {
  const auto handler = [](http_exchange_ptr e) { e->respond(200, {}, e->request().listener); };
  http_server server({}, {{"public", "127.0.0.1", 0, handler}, {"admin", "localhost", 0, handler}});
  server.start();
  for (const char* name : {"public", "admin"}) {
    raw_client client(server.port(name));
    client.send(get);
    CHECK(client.read_answer().ends_with(std::string("\r\n\r\n") + name));
  }
  CHECK_THROWS_AS(server.port("other"), std::out_of_range);
}

TEST_CASE("shutting down closes idle connections, finishes open ones, and then cuts") {
  echo_server echo;
  raw_client idle(echo.port()), busy(echo.port()), stuck(echo.port());
  idle.send(get);
  idle.read_answer();
  busy.send(get_hold);
  auto quick = echo.held.take();
  stuck.send(get_hold);
  auto never = echo.held.take();
  inbox<int> closed;
  never->on_closed([&] { closed.put(1); });

  echo.server.stop_accepting();
  echo.server.close_idle();
  CHECK(idle.read_all().empty());
  quick->respond(200, {}, "done");
  const std::string answer = busy.read_all();
  CHECK(answer.ends_with("\r\n\r\ndone"));
  CHECK_FALSE(keeps(answer));
  CHECK_FALSE(echo.server.stop(milliseconds(10)));
  closed.take();
  CHECK(stuck.read_all().empty());
  CHECK_THROWS(raw_client(echo.server.port("public")));
  // Owners may hold on to their exchanges for as long as they like.
  never->respond(200, {}, "too late");
  CHECK_FALSE(never->open());
}

TEST_CASE("exchanges outlive their server") {
  http_exchange_ptr exchange;
  http_exchange_ptr stream;
  {
    echo_server echo;
    raw_client a(echo.port()), b(echo.port());
    a.send(get_hold);
    exchange = echo.held.take();
    b.send(get_hold);
    stream = echo.held.take();
    stream->start_stream({});
    CHECK(write_and_wait(stream, "x"));
  }
  inbox<int> closed;
  exchange->on_closed([&] { closed.put(1); });
  CHECK(closed.take() == 1);
  CHECK_FALSE(write_and_wait(stream, "y"));
  stream->finish();
}

TEST_CASE("many clients on several threads get their own answers") {
  echo_server echo({}, 4);
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      raw_client client(echo.port());
      for (int i = 0; i < 100; ++i) {
        const std::string body = std::to_string(t) + ":" + std::to_string(i);
        client.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size())
                    + "\r\n\r\n" + body);
        if (client.read_answer().ends_with("POST /x?|" + body)) ++good;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(good == 1600);
  CHECK(echo.server.stop(milliseconds(5'000)));
  CHECK(echo.server.counters().connections_open == 0);
}
