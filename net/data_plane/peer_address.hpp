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

/// Is it 0.0.0.0 or ::, the address of a listener on all addresses of its host?
bool is_wildcard(const std::string& host);

/// What others are told of a listener on `listen` (ADDRESS:PORT), by a process whose end of its
/// connection to the control process is `here`: of one on all addresses that is `here`. Empty, so
/// that `listen` itself is told, of any other one; on the control process's host (`here` is
/// loopback, or empty), where no address is good for everybody and each peer takes what it reaches
/// the control process by. Throws std::invalid_argument when nobody listens on `here`: 0.0.0.0
/// takes IPv4 alone.
std::string advertised(const std::string& listen, const std::string& here);

/// Where `x` is reached over TCP. A peer that tells a wildcard is on the host of the control
/// process, `home`; empty: on this one. Throws std::runtime_error when it does not listen, or not
/// for the family of `home`.
std::string reachable_tcp(const peer_address& x, const std::string& home);

/// Is it on another host than the one named `self`, and listens for its own alone?
bool hides(const peer_address& x, const std::string& self);

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
