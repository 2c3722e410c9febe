#include "net/data_plane/peer_address.hpp"

#include <charconv>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace lamella::net {

namespace {

constexpr std::string_view address_prefix = "lamella-link/1";
constexpr size_t longest = 1024;

bool is_own_host(const std::string& host) {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

/// Is `address` one of IPv6, and `listener` on all addresses of IPv4 alone? A mapped IPv4 address
/// is one of those.
bool misses(const std::string& listener, const std::string& address) {
  return listener == "0.0.0.0" && address.find(':') != std::string::npos
         && !address.starts_with("::ffff:");
}

} // namespace

std::string to_string(const peer_address& x) {
  std::string text{address_prefix};
  text += ";process=" + x.process + ";host=" + x.host;
  if (!x.unix_path.empty()) text += ";unix=" + x.unix_path;
  if (!x.tcp.empty()) text += ";tcp=" + x.tcp;
  if (!x.verbs.empty()) text += ";verbs=" + x.verbs;
  return text;
}

std::optional<peer_address> parse_peer_address(const std::string& text) {
  if (text.size() > longest || !text.starts_with(address_prefix)) return {};
  peer_address result;
  for (size_t at = address_prefix.size(); at < text.size();) {
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

bool is_wildcard(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

std::string advertised(const std::string& listen, const std::string& here) {
  const auto where = parse_host_and_port(listen);
  if (!where || !is_wildcard(where->host) || here.empty() || is_own_host(here)) return {};
  if (misses(where->host, here))
    throw std::invalid_argument{
        "this worker listens on 0.0.0.0 (IPv4 only) but reaches the service by IPv6, from " + here
        + ": give --listen [::]:0 or a reachable address of this host"};
  return here;
}

std::string reachable_tcp(const peer_address& x, const std::string& home) {
  const auto where = parse_host_and_port(x.tcp);
  if (!where) throw std::runtime_error{"the peer does not listen on TCP"};
  if (!is_wildcard(where->host)) return x.tcp;
  auto host = home.empty() ? std::string{"127.0.0.1"} : home;
  if (misses(where->host, host)) {
    if (!is_own_host(host))
      throw std::runtime_error{"the peer listens on 0.0.0.0 (IPv4 only), but its host is known "
                               "as "
                               + host + ": set its listen address to [::]:0"};
    host = "127.0.0.1";
  }
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return host + ":" + std::to_string(where->port);
}

bool hides(const peer_address& x, const std::string& self) {
  const auto where = parse_host_and_port(x.tcp);
  return where && x.host != self && is_own_host(where->host);
}

std::string host_identity() {
  std::ifstream in{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  return in >> id ? id : "unknown";
}

} // namespace lamella::net
