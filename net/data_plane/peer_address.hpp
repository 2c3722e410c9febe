/// The published address of a data plane.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lamella::net {

/// Written as "lamella-link/1;process=…;host=…;unix=…;tcp=…;verbs=…"; opaque to intermediaries.
struct peer_address {
  std::string process;   ///< random, one per data plane
  std::string host;      ///< the same for all processes that share a kernel
  std::string unix_path; ///< or empty
  std::string tcp;       ///< HOST:PORT, or empty
  std::string verbs;     ///< its RDMA port, for logs; empty: none, or not to be used
};

std::string to_string(const peer_address& x);

/// Whether it is 0.0.0.0 or ::, the address of a listener on all addresses of its host.
bool is_wildcard(const std::string& host);

/// The address published for a listener on `listen` (ADDRESS:PORT), by a process whose end of its
/// connection to the control process is `here`: `here` for a listener on all addresses. Empty, so
/// that `listen` itself is published, for any other listener, and on the control process's host
/// (`here` is loopback or empty), where each peer uses the address by which it reaches the control
/// process. Throws std::invalid_argument when `listen` does not cover `here`: 0.0.0.0 is IPv4 only.
std::string advertised(const std::string& listen, const std::string& here);

/// The TCP address of `x`. A peer that publishes a wildcard is on the host of the control process,
/// `home`; empty: on this host. Throws std::runtime_error when it does not listen, or not for the
/// family of `home`.
std::string reachable_tcp(const peer_address& x, const std::string& home);

/// Whether `x` is on another host than `self` and listens on loopback only.
bool hides(const peer_address& x, const std::string& self);

/// Nothing when it is not one.
std::optional<peer_address> parse_peer_address(const std::string& text);

/// Splits HOST:PORT or [HOST]:PORT.
struct host_and_port {
  std::string host;
  uint16_t port = 0;
};
std::optional<host_and_port> parse_host_and_port(const std::string& text);

/// The running kernel's boot id; "unknown" where it cannot be read.
std::string host_identity();

} // namespace lamella::net
