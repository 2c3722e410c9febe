/// What a data plane publishes of itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lamella::net {

/// Written as "lamella-link/1;process=…;host=…;unix=…;tcp=…;verbs=…"; opaque to those who carry it.
struct peer_address {
  std::string process;   ///< random, one per data plane
  std::string host;      ///< the same for all processes that share a kernel
  std::string unix_path; ///< or empty
  std::string tcp;       ///< HOST:PORT, or empty
  std::string verbs;     ///< its RDMA port, for people; empty: none, or not to be used
};

std::string to_string(const peer_address& x);

/// Nothing when it is not one.
std::optional<peer_address> parse_peer_address(const std::string& text);

/// HOST:PORT or [HOST]:PORT in two.
struct host_and_port {
  std::string host;
  uint16_t port = 0;
};
std::optional<host_and_port> parse_host_and_port(const std::string& text);

/// The running kernel's boot id; "unknown" where it cannot be read.
std::string host_identity();

} // namespace lamella::net
