#include "net/http/client/http_client.hpp"

#include <charconv>

namespace lamella::net {

http_url parse_http_url(std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument("\"" + std::string(text.substr(0, 200))
                                + "\" is not a URL for this: " + why
                                + " (expected http://HOST[:PORT][/PATH], or https://)");
  };
  constexpr std::string_view plain = "http://", secure = "https://";
  constexpr uint16_t secure_port = 443;
  http_url url;
  std::string_view rest = text;
  if (rest.starts_with(plain)) {
    rest.remove_prefix(plain.size());
  } else if (rest.starts_with(secure)) {
    rest.remove_prefix(secure.size());
    url.tls = true;
    url.port = secure_port;
  } else if (rest.find("://") != std::string_view::npos) {
    refuse("the scheme is neither http nor https");
  }
  for (const char c : rest)
    if (c <= 0x20 || c >= 0x7F) refuse("it has blanks, control or non-ASCII characters");
  if (rest.find_first_of("?#@") != std::string_view::npos)
    refuse("it has a query, fragment or user");

  const size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (slash != std::string_view::npos) {
    std::string_view prefix = rest.substr(slash);
    while (prefix.ends_with('/')) prefix.remove_suffix(1);
    url.prefix = prefix;
  }
  std::string_view port;
  bool has_port = false;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) refuse("the bracket of the address is not closed");
    url.host = authority.substr(1, end - 1);
    std::string_view after = authority.substr(end + 1);
    if (!after.empty() && after.front() != ':') refuse("something follows the address");
    has_port = !after.empty();
    if (has_port) port = after.substr(1);
  } else {
    const size_t colon = authority.find(':');
    url.host = authority.substr(0, colon);
    has_port = colon != std::string_view::npos;
    if (has_port) port = authority.substr(colon + 1);
  }
  if (url.host.empty()) refuse("there is no host");
  if (has_port) {
    const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), url.port);
    if (ec != std::errc{} || end != port.data() + port.size() || url.port == 0)
      refuse("the port is not a number from 1 to 65535");
  }
  return url;
}

} // namespace lamella::net
