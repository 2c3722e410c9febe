/// Where one HTTP/1.1 request ends and the next begins: decided strictly, without sockets.
///
/// Two parties that disagree about that can be made to read each other's requests. The parser of
/// Boost.Beast knows the grammar of a header, but lets pass what proxies read differently (other
/// transfer codings, repeated lengths, line ends in chunk extensions and trailers). So heads are
/// scanned and checked here around it, and chunked bodies are decoded here.
#pragma once

#include "net/http/api_error.hpp"
#include "net/http/http_exchange.hpp"
#include "net/http/http_settings.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lamella::net {

/// Finds the end of a request head in bytes that arrive in pieces, and refuses early what breaks a
/// limit or the line structure: bare CR or LF, control characters, folded lines.
class head_scanner {
public:
  explicit head_scanner(const http_limits& limits) : limits_(limits) {}

  /// Looks at `buffer` from where it stopped. The size of the head including its empty line once
  /// that is there, else none. Throws api_error (400, 414, 431). Constant work per byte.
  std::optional<size_t> scan(std::string_view buffer);

private:
  const http_limits& limits_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  size_t lines_ = 0;
};

/// A checked request head.
struct request_head {
  std::string method;
  std::string path;
  std::string query;
  http_headers headers;
  bool http_1_0 = false;
  bool keep_alive = true;
  bool chunked = false;
  bool expect_continue = false;
  uint64_t content_length = 0; ///< when not chunked
};

/// Parses what head_scanner found. Throws api_error: 400 for everything that is not an unambiguous
/// request, 405 for CONNECT and TRACE.
request_head parse_head(std::string_view head, const http_limits& limits);

/// Throws api_error, 413, for a length beyond limits.body_bytes. Comes once the form of the
/// request's errors and the fields for its page are known.
void check_length(const request_head& head, const http_limits& limits);

/// Takes the chunks of a body apart. Chunk extensions and trailer fields are read over, as RFC 9112
/// has it (7.1.1, 7.1.2): nothing of them reaches the request.
class chunk_decoder {
public:
  explicit chunk_decoder(const http_limits& limits) : limits_(limits) {}

  /// Appends the data in `bytes` to `body` and returns how many bytes were used; fewer than all
  /// only when done(). Throws api_error: 413 beyond limits.body_bytes, 400 for more than
  /// limits.chunks, extensions of a chunk or trailers beyond their bytes, or anything but strict
  /// framing.
  size_t feed(std::string_view bytes, std::string& body);
  bool done() const { return state_ == state::done; }

  static constexpr size_t extension_bytes = 1 << 10; ///< of each chunk
  static constexpr size_t trailer_bytes = 8 << 10;   ///< of all fields

private:
  enum class state : uint8_t {
    size_first,
    size,
    blank, ///< behind a size, before an extension
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    end, ///< the CR of the empty line at the end, or the first letter of a trailer field
    name,
    value,
    value_lf,
    end_lf,
    done
  };

  /// Takes one character that is no data.
  void take(char c, size_t body_bytes);
  /// Takes one character of a chunk's size, or what ends it.
  void take_size(char c, size_t body_bytes);
  void take_extension(char c);
  /// Takes one character behind the last chunk.
  void take_trailer(char c);

  const http_limits& limits_;
  state state_ = state::size_first;
  uint64_t remaining_ = 0;
  unsigned digits_ = 0;
  size_t chunks_ = 0;
  size_t passed_ = 0; ///< bytes of the chunk's extensions, or of the trailers
};

/// Status line and fields of an answer. Control characters in values become blanks, so that no
/// value can end the head.
std::string response_head_text(int status, const http_headers& headers);

} // namespace lamella::net
