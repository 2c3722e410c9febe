// The same sessions through TLS, what only TLS can do wrong, and certificates that change.
#include "tests/net/http/http_session_fixture.hpp"
#include "tests/net/http/tls_client.hpp"

#include <atomic>
#include <csignal>
#include <fstream>
#include <thread>

#include <sys/stat.h>

using namespace lamella::net;
using namespace lamella::test;
using std::chrono::milliseconds;

namespace {

/// Writes to a socket that nobody reads any more must not end the program.
void want_the_signal() { std::signal(SIGPIPE, SIG_DFL); }

struct https_server {
  certificate_folder folder;
  echo_server echo;
  explicit https_server(http_limits limits = patient_limits(), unsigned threads = 1)
      : echo(limits, threads, (folder.make("first"), folder.identity("first"))) {
    want_the_signal();
  }
  uint16_t port() const { return echo.port(); }
};

std::string post_of(size_t length) {
  return "POST /n HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n"
         + std::string(length, 'b');
}

} // namespace

TEST_CASE("HTTPS: a connection serves many requests, in TLS 1.3 and 1.2, of any length") {
  https_server server;
  for (const int version : {TLS1_3_VERSION, TLS1_2_VERSION}) {
    CAPTURE(version);
    tls_client client(server.port(), 0, version);
    for (const size_t length : {3u, 16'384u, 16'385u, 100'000u, 3'000'000u}) {
      CAPTURE(length);
      REQUIRE(client.send(post_of(length)));
      const std::string answer = client.read_answer();
      CHECK(answer.ends_with("POST /n?|" + std::string(length, 'b')));
      CHECK(keeps(answer));
    }
    // Told to close, it says so in TLS, too.
    client.send("GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    CHECK(status_of(client.read_all()) == 200);
    CHECK(client.ended_properly());
  }
}

TEST_CASE("HTTPS: a request that comes byte by byte is one request") {
  https_server server;
  tls_client client(server.port());
  for (const char each : post_of(5)) REQUIRE(client.send({&each, 1}));
  CHECK(client.read_answer().ends_with("POST /n?|bbbbb"));
}

TEST_CASE("HTTPS: keys may change at any time, and any number of times") {
  https_server server;
  tls_client client(server.port(), 0, TLS1_3_VERSION);
  for (const bool both : {false, true}) {
    CAPTURE(both);
    for (int i = 0; i < 100; ++i) REQUIRE(client.change_keys(both));
    const auto request = post_of(40'000);
    for (size_t at = 0; at < request.size(); at += 5'000) {
      REQUIRE(client.send(std::string_view{request}.substr(at, 5'000)));
      REQUIRE(client.change_keys(both));
    }
    CHECK(client.read_answer().ends_with("POST /n?|" + std::string(40'000, 'b')));
  }
}

TEST_CASE("HTTPS: Expect: 100-continue is told to go on") {
  https_server server;
  tls_client client(server.port());
  client.send("POST /n HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  CHECK(client.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ab");
  CHECK(client.read_answer().ends_with("POST /n?|ab"));
}

TEST_CASE("HTTPS: a stream arrives piece by piece, and a large answer in spite of a slow reader") {
  https_server server;
  tls_client client(server.port(), 4096);
  client.send(get_hold);
  auto exchange = server.echo.held.take();
  exchange->start_stream({});
  client.read_until("\r\n\r\n");
  for (const char* piece : {"abc", "de"}) {
    CHECK(write_and_wait(exchange, piece));
    CHECK(client.read_until("\r\n") == std::to_string(std::string_view{piece}.size()) + "\r\n");
    CHECK(client.read_until("\r\n") == std::string{piece} + "\r\n");
  }
  exchange->finish();
  CHECK(client.read_until("\r\n\r\n") == "0\r\n\r\n");
  client.send(get_hold);
  std::string body(3 << 20, 'x');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i % 23);
  server.echo.held.take()->respond(200, {}, body);
  CHECK(client.read_answer().ends_with(body));
  client.send(get);
  CHECK(status_of(client.read_answer()) == 200);
}

TEST_CASE("HTTPS: a reader that never reads is cut after the stall time") {
  patient_limits limits;
  limits.stall_time = milliseconds(150);
  https_server server(limits);
  tls_client client(server.port(), 4096);
  client.send(get_hold);
  const auto exchange = server.echo.held.take();
  exchange->start_stream({});
  size_t taken = 0;
  while (write_and_wait(exchange, std::string(16 << 10, 'x'))) {
    taken += 16 << 10;
    REQUIRE(taken < (4 << 20));
  }
  CHECK(server.echo.server.counters().stalls == 1);
  CHECK(server.echo.server.counters().exchanges_open == 0);
}

TEST_CASE("HTTPS: a client that leaves is noticed while it waits and while it streams") {
  patient_limits limits;
  limits.half_close_time = milliseconds(50);
  https_server server(limits);
  for (const bool streaming : {false, true})
    for (const int how : {0, 1, 2}) { // says so in TLS, closes, resets
      CAPTURE(streaming);
      CAPTURE(how);
      tls_client client(server.port());
      client.send(get_hold);
      const auto exchange = server.echo.held.take();
      inbox<int> closed;
      exchange->on_closed([&] { closed.put(1); });
      if (streaming) {
        exchange->start_stream({});
        CHECK(write_and_wait(exchange, "abc"));
        client.read_until("abc\r\n");
      }
      if (how == 0) client.say_end();
      how == 2 ? client.reset() : client.close();
      closed.take();
      CHECK_FALSE(exchange->open());
      if (streaming) CHECK_FALSE(write_and_wait(exchange, "more"));
    }
  CHECK(server.echo.server.counters().disconnects == 6);
}

TEST_CASE("HTTPS: a client that only ended its sending side still gets a quick answer") {
  https_server server;
  tls_client client(server.port());
  client.send(get_hold);
  const auto exchange = server.echo.held.take();
  client.say_end();
  exchange->respond(200, {}, "quick");
  CHECK(client.read_all().ends_with("\r\n\r\nquick"));
  CHECK(client.ended_properly());
}

TEST_CASE("HTTPS: plain HTTP is told to speak HTTPS, and other bytes end the connection") {
  https_server server;
  const std::string answer = server.echo.exchange(get);
  CHECK(status_of(answer) == 400);
  CHECK(answer.find("https://") != std::string::npos);
  CHECK(server.echo.exchange(std::string(600, '\0')).find("HTTP/") == std::string::npos);
  const std::string no_hello = std::string("\x16\x03\x01\x02\x00", 5) + std::string(512, 'x');
  CHECK(server.echo.exchange(no_hello).find("HTTP/") == std::string::npos);
  CHECK(server.echo.server.counters().requests == 0);
  tls_client client(server.port()); // and others are served as before
  client.send(get);
  CHECK(status_of(client.read_answer()) == 200);
}

TEST_CASE("HTTPS: the time for a request's head holds for the handshake, too") {
  patient_limits limits;
  limits.header_time = milliseconds(60);
  https_server server(limits);
  raw_client silent(server.port());
  CHECK(silent.read_all().empty());
  raw_client half(server.port());
  half.send("\x16\x03\x01\x02");
  CHECK(half.read_all().empty());
  CHECK(server.echo.server.counters().requests == 0);
}

TEST_CASE("HTTPS: versions before 1.2 are refused") {
  https_server server;
  CHECK_THROWS_AS(tls_client(server.port(), 0, TLS1_1_VERSION), std::runtime_error);
}

TEST_CASE("HTTPS: connections over the limits are told so") {
  patient_limits limits;
  limits.connections = 1;
  https_server server(limits);
  tls_client first(server.port());
  first.send(get);
  CHECK(status_of(first.read_answer()) == 200);
  tls_client second(server.port());
  second.send(get);
  CHECK(status_of(second.read_all()) == 503);
}

TEST_CASE("HTTPS: an idle connection ends properly, and a server at once") {
  patient_limits limits;
  limits.idle_time = milliseconds(60);
  https_server server(limits);
  {
    tls_client client(server.port());
    client.send(get);
    client.read_answer();
    CHECK(client.read_all().empty());
    CHECK(client.ended_properly());
  }
  tls_client waits(server.port());
  raw_client shakes_no_hand(server.port());
  CHECK(server.echo.server.stop(std::chrono::minutes(5)));
}

TEST_CASE("HTTPS: another certificate is shown to those that come later, and to them alone") {
  https_server server;
  tls_client before(server.port());
  server.folder.make("second");
  server.echo.server.set_identity("public", server.folder.identity("second"));
  tls_client after(server.port());
  CHECK(before.subject() == "/CN=first");
  CHECK(after.subject() == "/CN=second");
  for (tls_client* each : {&before, &after}) {
    each->send(get);
    CHECK(status_of(each->read_answer()) == 200);
  }
}

TEST_CASE(
    "HTTPS: many clients on several threads get their own answers, while certificates change") {
  https_server server(patient_limits(), 3);
  server.folder.make("second");
  const auto other = server.folder.identity("second");
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c)
    clients.emplace_back([&, c] {
      for (int i = 0; i < 10; ++i) {
        tls_client client(server.port());
        for (int k = 0; k < 3; ++k) {
          const auto path = "/" + std::to_string(c) + "-" + std::to_string(i * 3 + k);
          client.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
          if (!client.read_answer().ends_with("GET " + path + "?|")) ++wrong;
        }
      }
    });
  for (int i = 0; i < 50; ++i)
    server.echo.server.set_identity("public", i % 2 ? server.folder.identity("first") : other);
  for (auto& each : clients) each.join();
  CHECK(wrong == 0);
}

TEST_CASE("files that make no identity are refused with a reason") {
  certificate_folder folder;
  folder.make("a");
  folder.make("b");
  folder.make("secret", 3600, "passphrase");
  folder.make("old", -100);
  std::ofstream(folder.path() / "text") << "no PEM\n";
  ::mkfifo((folder.path() / "pipe").c_str(), 0600);
  const auto refusal = [](const std::filesystem::path& certificate,
                          const std::filesystem::path& key) -> std::string {
    try {
      tls_identity::from_files(certificate, key);
    } catch (const tls_identity_error& e) {
      return e.what();
    }
    return {};
  };
  const auto pem = folder.certificate("a"), key = folder.key("a");
  CHECK(refusal(pem, key).empty());
  const auto says = [&](const std::string& text, const std::string& words) {
    CAPTURE(text);
    CHECK(text.find(words) != std::string::npos);
  };
  says(refusal(folder.path() / "none", key), "none: No such file");
  says(refusal(pem, folder.path() / "none"), "none: No such file");
  says(refusal(folder.path(), key), "is not a file");
  says(refusal(pem, folder.path() / "pipe"), "is not a file");
  says(refusal(folder.path() / "text", key), "text: is not a PEM certificate: no start line");
  says(refusal(pem, folder.path() / "text"), "text: is not the PEM private key");
  says(refusal(key, pem), "a.key: is not a PEM certificate");
  says(refusal(pem, folder.key("b")), "b.key: is not the PEM private key, without a passphrase, of "
                                      "the certificate "
                                          + pem.string() + ": key values mismatch");
  says(refusal(folder.certificate("secret"), folder.key("secret")), "without a passphrase");
  std::ofstream(folder.path() / "huge") << std::string((1 << 20) + 1, 'x');
  says(refusal(folder.path() / "huge", key), "is over 1 MiB");
  // One that is over is taken: whoever uses it is told, and can still be reached by the willing.
  const auto now = std::chrono::system_clock::now();
  CHECK(folder.identity("old")->expires() < now);
  CHECK(folder.identity("old")->expired());
  CHECK_FALSE(folder.identity("a")->expired());
  CHECK(folder.identity("a")->expires() > now + std::chrono::minutes(50));
  CHECK(folder.identity("a")->expires() < now + std::chrono::minutes(61));
}
