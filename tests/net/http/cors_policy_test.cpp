// Web pages of other origins: what their browsers are told.
#include "net/http/cors_policy.hpp"
#include "tests/net/http/http_session_fixture.hpp"

using namespace lamella::net;
using namespace lamella::test;

namespace {

/// The fields of an answer in the order of sending, one per line, without those all answers have.
std::string told(const cors_policy& rule, std::string_view method, const http_headers& request) {
  std::string result;
  for (const auto& [name, value] : rule.answer_fields(method, request))
    result += name + ": " + value + "\n";
  return result;
}

const http_headers preflight{{"Origin", "https://chat.example.org"},
                             {"Access-Control-Request-Method", "POST"},
                             {"Access-Control-Request-Headers", "authorization,content-type"}};

} // namespace

TEST_CASE("no page is let in unless its origin is named") {
  CHECK(told({}, "OPTIONS", preflight).empty());
  const cors_policy rule{{"http://localhost:3000", "https://chat.example.org"}};
  const std::string stranger = "vary: origin\n";
  for (const char* origin : {"https://chat.example.org.evil.example", "http://chat.example.org",
                             "https://chat.example.org:8443", "null", "*", ""}) {
    CAPTURE(origin);
    CHECK(told(rule, "GET", {{"origin", origin}}) == stranger);
  }
  CHECK(told(rule, "GET", {}) == stranger);
}

TEST_CASE("a page whose origin is named may ask and read") {
  const cors_policy rule{{"http://localhost:3000", "https://chat.example.org"}};
  const std::string let_in = "vary: origin\n"
                             "access-control-allow-origin: https://chat.example.org\n";
  CHECK(told(rule, "POST", {{"origin", "https://chat.example.org"}})
        == let_in + "access-control-expose-headers: *\n");
  const std::string asked = "access-control-allow-methods: GET, HEAD, POST, DELETE\n"
                            "access-control-allow-headers: authorization,content-type\n";
  CHECK(told(rule, "OPTIONS", preflight) == let_in + asked + "access-control-max-age: 7200\n");
  auto local = preflight;
  local.add("Access-Control-Request-Private-Network", "true");
  CHECK(told(rule, "OPTIONS", local)
        == let_in + asked
               + "access-control-allow-private-network: true\n"
                 "access-control-max-age: 7200\n");
  auto odd = preflight;
  odd.set("access-control-request-headers", "x-a: 1");
  CHECK(told(rule, "OPTIONS", odd).find("allow-headers") == std::string::npos);
}

TEST_CASE("a star lets every page in, and answers do not depend on whose it is") {
  const cors_policy rule{{"https://chat.example.org", "*"}};
  for (const char* origin : {"https://anybody.example", "null"})
    CHECK(told(rule, "GET", {{"origin", origin}})
          == "access-control-allow-origin: *\naccess-control-expose-headers: *\n");
  CHECK(told(rule, "GET", {}).empty());
}

TEST_CASE("all answers to a page can be read: streams, the server's own refusals, not the next "
          "one's on that connection") {
  http_server server{{patient_limits(), 1, "9.9"},
                     {{"public", "127.0.0.1", 0,
                       [](http_exchange_ptr e) {
                         if (e->request().path != "/stream") return e->respond(401, {}, "no");
                         e->start_stream({});
                         e->finish();
                       },
                       cors_policy{{"http://a.example"}}}}};
  server.start();
  raw_client client(server.port("public"));
  const std::string let_in = "\r\naccess-control-allow-origin: http://a.example\r\n";
  const auto asks = [](const std::string& path, const std::string& more) {
    return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + more + "\r\n";
  };
  client.send(asks("/x", "Origin: http://a.example\r\n"));
  CHECK(client.read_answer().find(let_in) != std::string::npos);
  client.send(asks("/x", ""));
  CHECK(client.read_answer().find("access-control") == std::string::npos);
  client.send(asks("/stream", "Origin: http://a.example\r\n"));
  CHECK(client.read_until("\r\n\r\n").find(let_in) != std::string::npos);
  client.read_chunks();
  client.send("POST /x HTTP/1.1\r\nHost: x\r\nOrigin: http://a.example\r\n"
              "Transfer-Encoding: chunked\r\n\r\nnonsense\r\n");
  const auto refused = client.read_until("\r\n\r\n");
  CHECK(refused.starts_with("HTTP/1.1 400"));
  CHECK(refused.find(let_in) != std::string::npos);
  raw_client large(server.port("public"));
  large.send("POST /x HTTP/1.1\r\nHost: x\r\nOrigin: http://a.example\r\n"
             "Content-Length: 16777217\r\n\r\n");
  const auto too_large = large.read_until("\r\n\r\n");
  CHECK(too_large.starts_with("HTTP/1.1 413"));
  CHECK(too_large.find(let_in) != std::string::npos);
}
