/// Text out of files, made safe to print.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace lamella {

/// `text` for an error message or a log line: bytes that are not printable ASCII appear as \xHH, so
/// that a file cannot write lines of its own into a log; at most `bytes_max` bytes are shown.
inline std::string printable(std::string_view text, size_t bytes_max = 80) {
  std::string out;
  for (const char c : text.substr(0, bytes_max)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && byte != '\\') {
      out += c;
    } else {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\x%02X", byte);
      out += escape;
    }
  }
  if (text.size() > bytes_max) out += "… (" + std::to_string(text.size()) + " bytes)";
  return out;
}

} // namespace lamella
