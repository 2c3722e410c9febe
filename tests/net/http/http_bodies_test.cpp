// The memory that the bodies of all requests take together.
#include "tests/net/http/http_session_fixture.hpp"

#include <memory>
#include <thread>
#include <vector>

using namespace lamella;
using namespace lamella::net;
using namespace lamella::test;

namespace {

constexpr size_t mib = size_t{1} << 20;

std::string post(size_t bytes, const std::string& path = "/n") {
  return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(bytes)
         + "\r\n\r\n";
}

/// Until so much is held: what was sent has been read.
bool holds(const byte_budget& all, size_t least, size_t most) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes{5};
  while (all.held() < least || all.held() > most) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

} // namespace

TEST_CASE("a budget leaves a quarter to those that hold little, and gets back what was held") {
  const auto all = std::make_shared<byte_budget>(4 * mib);
  {
    byte_budget::share large{all}, second{all}, little{all};
    CHECK(large.hold(2 * mib));
    CHECK_FALSE(second.hold(2 * mib));
    CHECK(second.bytes() == 0);
    CHECK(second.hold(mib));
    CHECK_FALSE(second.hold(mib + 1));
    CHECK(all->held() == 3 * mib);
    CHECK(little.hold(byte_budget::little));
    CHECK(large.hold(mib));
    const auto moved = std::move(second);
    CHECK(all->held() == 2 * mib + byte_budget::little);
    large = byte_budget::share{};
    CHECK(all->held() == mib + byte_budget::little);
  }
  CHECK(all->held() == 0);
}

TEST_CASE("whoever needs more than a budget has its turn beside those that hold a quarter") {
  const auto all = std::make_shared<byte_budget>(8 * mib);
  byte_budget::share other{all}, large{all}, second{all}, little{all};
  CHECK(other.hold_in_turn(2 * mib));
  CHECK(other.bytes() == 2 * mib);
  CHECK(large.hold_in_turn(100 * mib));
  CHECK(large.bytes() == 4 * mib); // the quarter of small holders stays theirs
  CHECK(little.hold_in_turn(byte_budget::little));
  other = byte_budget::share{};
  CHECK_FALSE(second.hold_in_turn(100 * mib)); // one at a time
  CHECK(second.bytes() == 0);
  CHECK(second.hold_in_turn(mib));
  large = byte_budget::share{};
  CHECK(all->held() == mib + byte_budget::little);
  large = byte_budget::share{all};
  CHECK(large.hold_in_turn(6 * mib));
  CHECK(all->held() == 6 * mib);
}

TEST_CASE("unfinished bodies hold no more than the limit, and small ones are let in beside them") {
  const auto all = std::make_shared<byte_budget>(4 * mib);
  echo_server echo(patient_limits{}, 1, nullptr, all);
  std::vector<std::unique_ptr<raw_client>> slow;
  for (size_t i = 1; i <= 2; ++i) { // each of them sends half of what it announced
    slow.push_back(std::make_unique<raw_client>(echo.port()));
    slow.back()->send(post(2 * mib) + std::string(mib, 'x'));
    CHECK(holds(*all, i * mib, i * (mib + mib / 4)));
  }
  // No more: of who announces a large body and sends it, and of one in chunks.
  raw_client more(echo.port());
  more.send(post(3 * mib) + std::string(3 * mib, 'x'));
  const auto refused = more.read_until("\r\n\r\n");
  CHECK(status_of(refused) == 503);
  CHECK(refused.find("retry-after: ") != std::string::npos);
  raw_client pieces(echo.port());
  pieces.send("POST /n HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n300000\r\n"
              + std::string(3 * mib, 'x'));
  CHECK(status_of(pieces.read_until("\r\n\r\n")) == 503);
  CHECK(all->refusals() == 2);
  CHECK(all->held() <= 3 * mib);
  raw_client little(echo.port());
  little.send(post(1000) + std::string(1000, 'y'));
  CHECK(status_of(little.read_answer()) == 200);
  // Whoever leaves makes room.
  slow.clear();
  CHECK(holds(*all, 0, 0));
  raw_client again(echo.port());
  again.send(post(2 * mib) + std::string(2 * mib, 'z'));
  CHECK(status_of(again.read_answer()) == 200);
  CHECK(holds(*all, 0, 0));
}

TEST_CASE("answers that nobody reads hold no more than the limit, and short ones need no room") {
  constexpr size_t long_answer = mib + mib / 4; // more than the kernel keeps for a reader
  net::http_settings settings;
  settings.limits = patient_limits{};
  http_listener listener;
  const auto all = listener.memory.answers = std::make_shared<byte_budget>(4 * mib);
  listener.name = "public";
  listener.handler = [](const http_exchange_ptr& e) {
    const bool is_long = e->request().path.ends_with("/long");
    e->respond(200, {}, std::string(is_long ? long_answer : 4096, 'x'));
  };
  http_server server{settings, {listener}};
  server.start();
  const auto get_of = [](const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
  };
  constexpr int small_buffer = 4 << 10;
  std::vector<std::unique_ptr<raw_client>> mute;
  for (size_t i = 1; i <= 2; ++i) {
    mute.push_back(std::make_unique<raw_client>(server.port("public"), small_buffer));
    mute.back()->send(get_of("/long"));
    CHECK(holds(*all, i * long_answer, i * long_answer));
  }
  raw_client more(server.port("public"));
  more.send(get_of("/v1/messages/long"));
  const auto refused = more.read_answer();
  CHECK(status_of(refused) == 503);
  CHECK(refused.find("retry-after: ") != std::string::npos);
  CHECK(refused.find("\"overloaded_error\"") != std::string::npos); // in the words of its API
  CHECK(all->refusals() == 1);
  more.send(get_of("/short"));
  CHECK(status_of(more.read_answer()) == 200);
  // Who reads, and who leaves, makes room.
  CHECK(mute.front()->read_answer().ends_with("x"));
  CHECK(holds(*all, long_answer, long_answer));
  mute.pop_back();
  CHECK(holds(*all, 0, 0));
  more.send(get_of("/long"));
  CHECK(status_of(more.read_answer()) == 200);
}

TEST_CASE("each listener has memory of its own for bodies and answers, and no more") {
  net::http_settings settings;
  settings.limits = patient_limits{};
  std::vector<http_listener> listeners(2);
  std::vector<http_memory> memory;
  for (auto& each : listeners) {
    memory.emplace_back(4 * mib);
    each.handler = [](const http_exchange_ptr& e) {
      e->respond(200, {}, std::string(e->request().method == "GET" ? 2 * mib : 1, 'x'));
    };
    each.memory = memory.back();
  }
  listeners[0].name = "public", listeners[1].name = "admin";
  http_server server{settings, listeners};
  server.start();
  const std::string get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  std::vector<std::unique_ptr<raw_client>> slow;
  for (size_t i = 0; i < 2; ++i) {
    CAPTURE(i);
    const auto port = server.port(listeners[i].name);
    raw_client first(port), poster(port);
    first.send(get); // whatever readers and writers of the listener before hold
    CHECK(status_of(first.read_answer()) == 200);
    poster.send(post(2 * mib) + std::string(2 * mib, 'x'));
    CHECK(status_of(poster.read_answer()) == 200);
    CHECK(holds(*memory[i].answers, 0, 0));
    CHECK(holds(*memory[i].bodies, 0, 0));
    for (const auto& half : {get, post(3 * mib) + std::string(2 * mib, 'x')}) {
      slow.push_back(std::make_unique<raw_client>(port, 4 << 10));
      slow.back()->send(half);
    }
    CHECK(holds(*memory[i].answers, 2 * mib, 2 * mib));
    CHECK(holds(*memory[i].bodies, 2 * mib, 3 * mib));
    first.send(get);
    CHECK(status_of(first.read_answer()) == 503);
    poster.send(post(2 * mib) + std::string(2 * mib, 'x'));
    CHECK(status_of(poster.read_until("\r\n\r\n")) == 503);
    CHECK(memory[i].answers->refusals() == 1);
    CHECK(memory[i].bodies->refusals() == 1);
  }
  CHECK(server.counters().answer_bytes == 4 * mib);
  CHECK(server.counters().answers_refused == 2);
}

TEST_CASE("an answer that is larger than the limit is written where others hold a quarter") {
  net::http_settings settings;
  settings.limits = patient_limits{};
  http_listener listener;
  const auto all = listener.memory.answers = std::make_shared<byte_budget>(8 * mib);
  listener.name = "public";
  listener.handler = [](const http_exchange_ptr& e) {
    e->respond(200, {}, std::string(std::stoul(e->request().path.substr(1)), 'x'));
  };
  http_server server{settings, {listener}};
  server.start();
  const auto get_of = [](size_t bytes) {
    return "GET /" + std::to_string(bytes) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  };
  constexpr int small_buffer = 4 << 10;
  raw_client other(server.port("public"), small_buffer);
  other.send(get_of(2 * mib));
  CHECK(holds(*all, 2 * mib, 2 * mib));
  raw_client mute(server.port("public"), small_buffer), more(server.port("public"));
  mute.send(get_of(10 * mib));
  CHECK(holds(*all, 6 * mib, 6 * mib));
  more.send(get_of(10 * mib));
  CHECK(status_of(more.read_answer()) == 503);
  more.send(get_of(32 << 10)); // small ones keep their quarter
  CHECK(status_of(more.read_answer()) == 200);
  CHECK(mute.read_answer().size() > 10 * mib);
  CHECK(holds(*all, 2 * mib, 2 * mib));
  more.send(get_of(10 * mib));
  CHECK(status_of(more.read_answer()) == 200);
}

TEST_CASE("a body is held until its reader has taken it and is done, or its request is over") {
  const auto all = std::make_shared<byte_budget>(4 * mib);
  echo_server echo(patient_limits{}, 1, nullptr, all);
  raw_client client(echo.port());
  client.send(post(mib, "/hold") + std::string(mib, 'x'));
  const auto exchange = echo.held.take();
  CHECK(all->held() == mib);
  {
    const auto body = exchange->take_body();
    CHECK(body.text.size() == mib);
    CHECK(exchange->request().body.empty());
    CHECK(all->held() == mib);
  }
  CHECK(all->held() == 0);
  exchange->respond(200, {}, "ok");
  CHECK(client.read_answer().ends_with("ok"));
}
