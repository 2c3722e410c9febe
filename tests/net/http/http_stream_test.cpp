// Streamed answers, slow readers, and clients that leave.
#include "tests/net/http/http_session_fixture.hpp"

#include <atomic>
#include <thread>

using namespace lamella::net;
using namespace lamella::test;
using std::chrono::milliseconds;

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
  patient_limits limits;
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
  raw_client client(echo.port());
  client.send(get_hold);
  auto exchange = echo.held.take();
  exchange->start_stream({});
  CHECK(write_and_wait(exchange, "abc"));
  exchange.reset();
  CHECK(client.read_all().ends_with("3\r\nabc\r\n"));
}

TEST_CASE("a client that leaves is noticed while it waits and while it streams") {
  patient_limits limits;
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
  echo_server echo;
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
  CHECK(echo.server.stop(std::chrono::minutes(5)));
  CHECK(closed == 0);
}

TEST_CASE("a reader that never reads costs little and is cut after the stall time") {
  patient_limits limits;
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

TEST_CASE("a whole answer has to be read within a time that grows with its size") {
  patient_limits limits;
  limits.answer_rate_after = milliseconds(0);
  for (const bool in_time : {true, false}) {
    CAPTURE(in_time);
    limits.answer_bytes_per_second = in_time ? 1 << 10 : 32 << 20;
    inbox<int> closed; // outlives the server
    echo_server echo(limits);
    raw_client client(echo.port(), 4096);
    client.send(get_hold);
    const auto exchange = echo.held.take();
    exchange->on_closed([&] { closed.put(1); });
    exchange->respond(200, {}, std::string(4 << 20, 'x'));
    if (in_time) {
      CHECK(client.read_answer().size() > size_t{4} << 20);
    } else {
      closed.take(); // though the time for a stall is not over
      CHECK(client.read_answer().size() < size_t{4} << 20);
    }
    CHECK(echo.server.counters().stalls == (in_time ? 0 : 1));
  }
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
