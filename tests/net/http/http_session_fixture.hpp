/// Requests of a plain client, and what its answers say.
#pragma once

#include "tests/net/http/http_fixture.hpp"

#include <doctest/doctest.h>

namespace lamella::test {

inline const std::string get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
inline const std::string get_hold = "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n";

inline bool keeps(const std::string& answer) {
  return answer.find("\r\nconnection: keep-alive\r\n") != std::string::npos;
}

/// Takes chunked framing apart, as far as it came.
inline std::string unchunked(std::string_view wire) {
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
inline bool write_and_wait(const net::http_exchange_ptr& exchange, std::string piece) {
  inbox<bool> written;
  exchange->write(std::move(piece), [&](bool ok) { written.put(ok); });
  return written.take();
}

} // namespace lamella::test
