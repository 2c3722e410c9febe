// Strict framing (reliability B3): each row over a real socket, and the pure parts byte by byte.
#include "net/http/http_framing.hpp"

#include "tests/net/http/http_fixture.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace lamella::net;
using namespace lamella::test;

namespace {

/// A request that would be served if the one before it were misread.
const std::string smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";

std::string repeat(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

struct row {
  std::string name;
  std::string bytes;
  int status = 400;
};

std::vector<row> refused_requests() {
  const std::string post = "POST /v1 HTTP/1.1\r\nHost: x\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  return {
      {"gzip as the only transfer coding", post + "Transfer-Encoding: gzip\r\n\r\n"},
      {"chunked after another coding", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
      {"identity", post + "Transfer-Encoding: identity\r\n\r\n"},
      {"chunked twice", post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"},
      {"chunked in two fields",
       post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"chunked with a parameter", post + "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"},
      {"quoted chunked", post + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"},
      {"an empty coding", post + "Transfer-Encoding:\r\n\r\n"},
      {"coding and length",
       post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"},
      {"length and coding",
       post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"another coding and length",
       post + "Transfer-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab"},
      {"equal lengths repeated", post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab"},
      {"different lengths", post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nab"},
      {"a list of lengths", post + "Content-Length: 2, 2\r\n\r\nab"},
      {"a signed length", post + "Content-Length: +2\r\n\r\nab"},
      {"a negative length", post + "Content-Length: -2\r\n\r\nab"},
      {"a hexadecimal length", post + "Content-Length: 0x2\r\n\r\nab"},
      {"an empty length", post + "Content-Length: \r\n\r\nab"},
      {"a length beyond 64 bits", post + "Content-Length: 18446744073709551618\r\n\r\nab"},
      {"chunked on HTTP/1.0",
       "POST /v1 HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"a folded header", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c: d\r\n\r\n"},
      {"a header folded by a tab", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n"},
      {"a fold right after the request line", "GET / HTTP/1.1\r\n Host: x\r\n\r\n"},
      {"no Host", "GET / HTTP/1.1\r\n\r\n"},
      {"two Hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n"},
      {"two Hosts on HTTP/1.0", "GET / HTTP/1.0\r\nHost: x\r\nhost: y\r\n\r\n"},
      {"a Host with a blank", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
      {"a Host with a comma and path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
      {"a blank after a chunk size",
       post + "Transfer-Encoding: chunked\r\n\r\n2 \r\nab\r\n0\r\n\r\n"},
      {"4 MB of chunk extension", chunked + "1;" + repeat("a", 4'000'000)},
      {"4 MB of blanks behind a size", chunked + "1" + repeat(" ", 4'000'000)},
      {"1,025 bytes of chunk extension", chunked + "0;" + repeat("a", 1'024) + "\r\n\r\n"},
      {"a LF in a chunk extension", chunked + "2;a\nab\r\n0\r\n\r\n"},
      {"a CR in a chunk extension", chunked + "2;a\rb\r\nab\r\n0\r\n\r\n"},
      {"a control character in a chunk extension", chunked + "2;\x01\r\nab\r\n0\r\n\r\n"},
      {"a chunk extension ended by LF", chunked + "0;a\n\r\n"},
      {"an extension without a size", chunked + ";a\r\n\r\n"},
      {"20,000 trailers", chunked + "0\r\n" + repeat("A: b\r\n", 20'000)},
      {"8,193 bytes of trailers", chunked + "0\r\nA: " + repeat("b", 8'188) + "\r\n\r\n"},
      {"a trailer ended by LF", chunked + "0\r\nA: b\n\r\n"},
      {"a LF instead of a trailer", chunked + "0\r\n\n"},
      {"a folded trailer", chunked + "0\r\nA: b\r\n c\r\n\r\n"},
      {"a trailer that begins with a blank", chunked + "0\r\n A: b\r\n\r\n"},
      {"a blank before the colon of a trailer", chunked + "0\r\nA : b\r\n\r\n"},
      {"a trailer without a colon", chunked + "0\r\nGET / HTTP/1.1\r\n\r\n"},
      {"a trailer without a name", chunked + "0\r\n: b\r\n\r\n"},
      {"a NUL in the name of a trailer", chunked + "0\r\nA" + std::string(1, '\0') + ": b\r\n\r\n"},
      {"a control character in a trailer", chunked + "0\r\nA: \x01\r\n\r\n"},
      {"a CR in a trailer", chunked + "0\r\nA: b\rc\r\n\r\n"},
      {"no chunk size", post + "Transfer-Encoding: chunked\r\n\r\n\r\n\r\n"},
      {"a chunk size that is no number", post + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n"},
      {"a negative chunk size", post + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n"},
      {"a chunk size of nine digits",
       post + "Transfer-Encoding: chunked\r\n\r\n000000001\r\na\r\n"},
      {"chunk data longer than its size",
       post + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n"},
      {"a chunk ended by LF", post + "Transfer-Encoding: chunked\r\n\r\n1\na\n0\n\n"},
      {"4,097 chunks", post + "Transfer-Encoding: chunked\r\n\r\n" + repeat("1\r\na\r\n", 4'097)},
      {"lines ended by LF", "GET / HTTP/1.1\nHost: x\n\n"},
      {"one line ended by LF", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"},
      {"a lone CR", "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n"},
      {"a NUL in a header",
       "GET / HTTP/1.1\r\nHost: x\r\nA: b" + std::string(1, '\0') + "c\r\n\r\n"},
      {"a control character in a header", "GET / HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n"},
      {"a control character in the target", "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"a tab in the target", "GET /\ta HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"non-ASCII in the target", "GET /\xC3\xA9 HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"a fragment in the target", "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"a target that is no path", "GET a HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"a star with GET", "GET * HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"a blank before the colon", "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n"},
      {"a header without colon", "GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n"},
      {"an empty header name", "GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n"},
      {"no version", "GET /\r\nHost: x\r\n\r\n"},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: x\r\n\r\n"},
      {"two blanks in the request line", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"a method with a colon", "GE:T / HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"TLS", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x0a", 12)},
      {"an unknown expectation", post + "Content-Length: 2\r\nExpect: 200-ok\r\n\r\nab"},
      {"two expectations",
       post + "Content-Length: 2\r\nExpect: 100-continue\r\nExpect: 100-continue\r\n\r\nab"},
      {"CONNECT", "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 405},
      {"TRACE", "TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", 405},
      {"a long request line", "GET /" + repeat("a", 9'000) + " HTTP/1.1\r\nHost: x\r\n\r\n", 414},
      {"an endless request line", repeat("a", 5'000'000), 414},
      {"a long header", "GET / HTTP/1.1\r\nHost: x\r\nA: " + repeat("a", 9'000) + "\r\n\r\n", 431},
      {"5 MB of headers", "GET / HTTP/1.1\r\nHost: x\r\n" + repeat("A: b\r\n", 800'000), 431},
      {"headers of more than 16 KiB",
       "GET / HTTP/1.1\r\nHost: x\r\n" + repeat("A: " + repeat("b", 997) + "\r\n", 17) + "\r\n",
       431},
      {"101 headers", "GET / HTTP/1.1\r\nHost: x\r\n" + repeat("A: b\r\n", 100) + "\r\n", 431},
      {"a length beyond the limit", post + "Content-Length: 16777217\r\n\r\n", 413},
      {"a chunk beyond the limit", post + "Transfer-Encoding: chunked\r\n\r\n1000001\r\n", 413},
  };
}

} // namespace

TEST_CASE("requests with broken or ambiguous framing are refused once and the connection closed") {
  for (const row& each : refused_requests()) {
    CAPTURE(each.name);
    echo_server echo;
    const std::string answer = echo.exchange(each.bytes + smuggled);
    CAPTURE(answer);
    CHECK(status_of(answer) == each.status);
    CHECK(answer.find("\r\nconnection: close\r\n") != std::string::npos);
    CHECK(answer.find("\r\nx-request-id: req-") != std::string::npos);
    CHECK(answer.find("{\"error\":{\"message\":\"") != std::string::npos);
    CHECK(answer.find("HTTP/1.1", 1) == std::string::npos); // one answer only
    CHECK(echo.server.counters().requests == 0);            // nothing reached a handler
    CHECK(echo.server.counters().refused == 1);
  }
}

TEST_CASE("a body of messages that is too large is refused in the form of that API") {
  for (const std::string& announced :
       {std::string("Content-Length: 16777217\r\n\r\n"),
        std::string("Transfer-Encoding: chunked\r\n\r\n1000001\r\n")}) {
    CAPTURE(announced);
    echo_server echo;
    const auto answer = echo.exchange("POST /v1/messages HTTP/1.1\r\nHost: x\r\n" + announced);
    CHECK(status_of(answer) == 413);
    CHECK(answer.find(R"({"type":"error","error":{"type":"request_too_large",)")
          != std::string::npos);
    CHECK(answer.find("\r\nrequest-id: req-") != std::string::npos);
  }
}

TEST_CASE("every answer of Anthropic's API has the request's id by its name there, and no other") {
  echo_server echo;
  const auto asked = [&](const std::string& path) {
    return echo.exchange("GET " + path
                         + " HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\n"
                           "Connection: close\r\n\r\n");
  };
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens", "/v1/messages/x"})
    CHECK(asked(path).find("\r\nrequest-id: mine\r\n") != std::string::npos);
  CHECK(asked("/v1/chat/completions").find("\r\nrequest-id: ") == std::string::npos);
}

TEST_CASE("requests at the edge of what is allowed are served") {
  const std::string post = "POST /v1?a=b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
  const std::pair<std::string, std::string> table[] = {
      {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET /?|"},
      {"GET / HTTP/1.0\r\n\r\n", "GET /?|"},
      {"\r\nGET / HTTP/1.0\r\n\r\n", "GET /?|"},
      {"GET http://x.org/a/b?c HTTP/1.1\r\nHost: x.org\r\nConnection: close\r\n\r\n",
       "GET /a/b?c|"},
      {"GET /a%20b/%C3%A9 HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n",
       "GET /a%20b/%C3%A9?|"},
      {"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "OPTIONS *?|"},
      {post + "Content-Length: 5\r\n\r\nhello", "POST /v1?a=b|hello"},
      {post + "Content-Length: 0\r\n\r\n", "POST /v1?a=b|"},
      {post + "\r\n", "POST /v1?a=b|"},
      {post + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0000a\r\n, world!!!\r\n0\r\n\r\n",
       "POST /v1?a=b|hello, world!!!"},
      {post + "transfer-encoding: CHUNKED\r\n\r\n0\r\n\r\n", "POST /v1?a=b|"},
      {post
           + "Transfer-Encoding: chunked\r\n\r\n2;a=b;c=\"d;\té\"\r\nab\r\n1 \t; a = "
             "b\r\nc\r\n0;a\r\n\r\n",
       "POST /v1?a=b|abc"},
      {post + "Transfer-Encoding: chunked\r\n\r\n1;" + repeat("a", 1'023) + "\r\na\r\n1;"
           + repeat("a", 1'023) + "\r\nb\r\n0\r\n\r\n",
       "POST /v1?a=b|ab"},
      {post + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nContent-Length: 5\r\nX-A:\r\n\r\n",
       "POST /v1?a=b|a"},
      {post + "Transfer-Encoding: chunked\r\n\r\n0\r\nA: " + repeat("b", 8'187) + "\r\n\r\n",
       "POST /v1?a=b|"},
      {post + "Upgrade: h2c\r\nContent-Length: 1\r\n\r\na", "POST /v1?a=b|a"},
      {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + repeat("A: b\r\n", 98) + "\r\n",
       "GET /?|"},
      {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA: " + repeat("a", 8'000) + "\r\n\r\n",
       "GET /?|"},
  };
  for (const auto& [bytes, body] : table) {
    CAPTURE(bytes);
    echo_server echo;
    const std::string answer = echo.exchange(bytes);
    CAPTURE(answer);
    CHECK(status_of(answer) == 200);
    CHECK(answer.ends_with("\r\n\r\n" + body));
  }
}

TEST_CASE("trailers say nothing of their request, and the next one begins behind them") {
  echo_server echo;
  raw_client client(echo.port());
  client.send("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
              "1;a=\"0\"\r\nb\r\n0\r\nConnection: close\r\nContent-Length: 99\r\n\r\n");
  CHECK(client.read_answer().ends_with("POST /a?|b"));
  client.send("GET /c HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(client.read_answer().ends_with("GET /c?|"));
}

TEST_CASE("Expect: 100-continue is told to go on before the body is sent") {
  echo_server echo;
  raw_client client(echo.port());
  client.send("POST /e HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n");
  CHECK(client.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ab");
  CHECK(client.read_answer().ends_with("POST /e?|ab"));
}

TEST_CASE("a chunked body means the same in pieces of any size") {
  const std::string wire =
      "3\r\nabc\r\n0A ;x=\"y\"\r\n0123456789\r\n1\r\n\n\r\n0;z\r\nA: b\r\nC:\r\n\r\nrest";
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const http_limits limits;
    chunk_decoder decoder(limits);
    std::string body;
    size_t at = 0;
    while (at < wire.size() && !decoder.done()) {
      const size_t piece = round == 0 ? 1 : 1 + random() % 9;
      at += decoder.feed(std::string_view(wire).substr(at, piece), body);
    }
    CHECK(decoder.done());
    CHECK(body == "abc0123456789\n");
    CHECK(wire.substr(at) == "rest");
  }
}

TEST_CASE("a request head ends at the same byte in pieces of any size") {
  const std::string wire = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET";
  const size_t end = wire.find("abc");
  for (size_t piece = 1; piece <= wire.size(); ++piece) {
    const http_limits limits;
    head_scanner scanner(limits);
    std::optional<size_t> found;
    for (size_t size = piece; !found && size <= wire.size() + piece; size += piece)
      found = scanner.scan(std::string_view(wire).substr(0, size));
    CAPTURE(piece);
    REQUIRE(found);
    CHECK(*found == end);
  }
}

TEST_CASE("damaged heads are refused or parsed, never worse") {
  const std::string good =
      "POST /v1/x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nConnection: keep-alive\r\n\r\n";
  const http_limits limits;
  std::mt19937 random(17);
  size_t parsed = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (unsigned n = 1 + random() % 3; n; --n) {
      const size_t at = random() % text.size();
      if (random() % 2)
        text[at] = static_cast<char>(random());
      else
        text.insert(at, 1, " \r\n\t:,;\0a"[random() % 9]);
    }
    try {
      head_scanner scanner(limits);
      const auto size = scanner.scan(text);
      if (!size) continue;
      const request_head head = parse_head(std::string_view(text).substr(0, *size), limits);
      check_length(head, limits);
      ++parsed;
      CHECK(head.content_length <= limits.body_bytes);
      CHECK((head.path.starts_with('/') || head.path == "*"));
    } catch (const api_error& error) {
      CHECK(error.status >= 400);
      CHECK(error.status < 500);
    }
  }
  CHECK(parsed > 1000);
}

TEST_CASE("header values of an answer cannot end its head") {
  const std::string text = response_head_text(404, {{"a", "b\r\nc: d"}});
  CHECK(text == "HTTP/1.1 404 Not Found\r\na: b  c: d\r\n\r\n");
}
