/// Authentication in front of a port that trusts every connection: a connection proves knowledge of
/// the shared secret before any of its bytes is forwarded.
///
///   who comes                                 the gate
///   hello: version, TLS or not, nonce     →
///                                          ← challenge: the same of the gate
///   proof                                 →
///                                          ← verdict: yes and its own proof, or why not
///
/// All messages have a fixed size, the handshake has a timeout, and the number of concurrent
/// handshakes is bounded; so an unauthenticated connection costs only a descriptor for a while.
#pragma once

#include "net/data_plane/shared_secret.hpp"
#include "net/http/client/host_lookup.hpp"
#include "net/link/shm_segment.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace lamella::net {

/// A connection after mutual authentication; nothing else was sent on it.
struct gate_pass {
  owned_descriptor socket; ///< does not block
  std::string here, there; ///< addresses of its two ends, without ports
};

struct gate_options {
  std::string host;                   ///< name or address, IPv6 without brackets
  uint16_t port = 0;                  ///< 0: any
  std::vector<shared_secret> secrets; ///< any of them is accepted
  bool tls = false;                   ///< TLS after the handshake; must be equal on both sides
  /// Called with each authenticated connection, on the gate's own thread; an exception closes the
  /// connection.
  std::function<void(gate_pass)> on_pass;
  /// Called with the address and reason of a refused connection; at most ten per second, then with
  /// their number.
  std::function<void(const std::string& who, const std::string& why)> on_refuse;
  std::chrono::milliseconds timeout{5'000}; ///< for the whole handshake
  size_t strangers_max = 64;                ///< beyond, the oldest one is closed
};

/// Listens until it is destroyed.
class control_gate {
public:
  /// Throws std::system_error when it cannot listen.
  explicit control_gate(gate_options options);
  ~control_gate();
  control_gate(const control_gate&) = delete;
  control_gate& operator=(const control_gate&) = delete;

  uint16_t port() const;

  struct impl;

private:
  std::shared_ptr<impl> impl_;
};

/// Why a connection did not pass a gate; the text is for the operator of that side.
struct gate_error : std::runtime_error {
  enum class reason : uint8_t {
    unreachable, ///< no listener, or no reply
    denied,      ///< the secrets differ
    refused      ///< version or TLS setting differ
  };
  gate_error(reason r, const std::string& text) : std::runtime_error{text}, why{r} {}
  reason why;
};

/// Connects to a gate and authenticates; blocks for at most `timeout`, including a hanging lookup
/// of the host's name. Throws gate_error.
gate_pass pass_gate(const std::string& host, uint16_t port, const shared_secret& secret, bool tls,
                    std::chrono::milliseconds timeout, host_lookup look_up = system_lookup);

} // namespace lamella::net
