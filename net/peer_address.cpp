#include "net/peer_address.hpp"

#include <charconv>
#include <fstream>
#include <string_view>

namespace lamella::net {

namespace {

constexpr std::string_view prefix = "lamella-link/1";
constexpr size_t longest = 1024;

} // namespace

std::string to_string(const peer_address& x) {
  std::string text{prefix};
  text += ";process=" + x.process + ";host=" + x.host;
  if (!x.unix_path.empty()) text += ";unix=" + x.unix_path;
  if (!x.tcp.empty()) text += ";tcp=" + x.tcp;
  if (!x.verbs.empty()) text += ";verbs=" + x.verbs;
  return text;
}

std::optional<peer_address> parse_peer_address(const std::string& text) {
  if (text.size() > longest || !text.starts_with(prefix)) return {};
  peer_address result;
  for (size_t at = prefix.size(); at < text.size();) {
    if (text[at] != ';') return {};
    const auto equals = text.find('=', at);
    if (equals == std::string::npos) return {};
    const auto end = std::min(text.find(';', equals), text.size());
    const auto name = std::string_view{text}.substr(at + 1, equals - at - 1);
    auto value = text.substr(equals + 1, end - equals - 1);
    if (name == "process")
      result.process = std::move(value);
    else if (name == "host")
      result.host = std::move(value);
    else if (name == "unix")
      result.unix_path = std::move(value);
    else if (name == "tcp")
      result.tcp = std::move(value);
    else if (name == "verbs")
      result.verbs = std::move(value);
    at = end; // a name we do not know is of a later version
  }
  if (result.process.empty() || (!result.tcp.empty() && !parse_host_and_port(result.tcp)))
    return {};
  return result;
}

std::optional<host_and_port> parse_host_and_port(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return {};
  host_and_port result{text.substr(0, colon), 0};
  if (result.host.front() == '[') {
    if (result.host.back() != ']' || result.host.size() < 3) return {};
    result.host = result.host.substr(1, result.host.size() - 2);
  }
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, result.port);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return {};
  return result;
}

std::string host_identity() {
  std::ifstream in{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  return in >> id ? id : "unknown";
}

} // namespace lamella::net
