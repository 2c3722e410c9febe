// Listeners: ports, shutdown, threads.
#include "tests/net/http/http_session_fixture.hpp"

#include <atomic>
#include <thread>

using namespace lamella::net;
using namespace lamella::test;
using std::chrono::milliseconds;

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

TEST_CASE("a listener goes on accepting while another one's last answers are taken") {
  inbox<http_exchange_ptr> held;
  http_server::settings settings;
  settings.limits = patient_limits();
  http_server server(
      settings,
      {{"public", "127.0.0.1", 0, [&](http_exchange_ptr e) { held.put(std::move(e)); }},
       {"admin", "127.0.0.1", 0, [](http_exchange_ptr e) { e->respond(200, {}, "seen"); }}});
  server.start();
  raw_client slow(server.port("public"));
  slow.send(get);
  const auto answer = held.take();
  server.stop_accepting("public");
  const auto refused = [&](const char* listener) {
    try {
      raw_client{server.port(listener)};
    } catch (const std::exception&) {
      return true;
    }
    return false;
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (!refused("public") && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  CHECK(refused("public"));
  raw_client operators(server.port("admin"));
  operators.send(get);
  CHECK(operators.read_answer().ends_with("seen"));
  answer->respond(200, {}, "done");
  CHECK(slow.read_all().ends_with("done"));
  CHECK(server.stop(std::chrono::minutes(5)));
  CHECK(refused("admin"));
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

TEST_CASE("a server ends at once though somebody is just coming in") {
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) {
    echo_server echo;
    const raw_client coming(echo.port());
    // The kernel has let it in. The server may be anywhere between that and its first read.
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(i);
    while (std::chrono::steady_clock::now() < until) {
    }
    CHECK(echo.server.stop(std::chrono::minutes(5)));
    CHECK(echo.server.counters().connections_open == 0);
  }
  // One that is overlooked stays for its idle time.
  CHECK(std::chrono::steady_clock::now() - begun < patient_limits().idle_time);
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
  CHECK(echo.server.stop(std::chrono::minutes(5)));
  CHECK(echo.server.counters().connections_open == 0);
}
