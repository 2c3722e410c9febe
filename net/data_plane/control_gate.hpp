/// In front of a port that believes whoever reaches it: strangers prove that they know the secret
/// before the first byte of theirs goes any further.
///
///   who comes                                 the gate
///   hello: version, TLS or not, nonce     →
///                                          ← challenge: the same of the gate
///   proof                                 →
///                                          ← verdict: yes and its own proof, or why not
///
/// All messages have a fixed size, the conversation a deadline, and the number of those who are in
/// it a bound; so a stranger costs a descriptor for a while and nothing else.
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

/// A connection whose two sides have proved themselves; nothing but their proofs has been said.
struct gate_pass {
  owned_descriptor socket; ///< does not block
  std::string here, there; ///< addresses of its two ends, without ports
};

struct gate_options {
  std::string host;                   ///< name or address, IPv6 without brackets
  uint16_t port = 0;                  ///< 0: any
  std::vector<shared_secret> secrets; ///< any of them is accepted
  bool tls = false; ///< what follows the conversation; both sides must want the same
  /// Takes those who have passed, on the gate's own thread; what it throws ends that connection.
  std::function<void(gate_pass)> on_pass;
  /// Is told who was sent away and why, one line; ten a second at most, then their number.
  std::function<void(const std::string& who, const std::string& why)> on_refuse;
  std::chrono::milliseconds patience{5'000}; ///< for the whole conversation
  size_t strangers_max = 64;                 ///< beyond, the one that came first is sent away
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

/// Why somebody has not passed a gate; the text is for the operator of that side.
struct gate_error : std::runtime_error {
  enum class reason : uint8_t {
    unreachable, ///< nobody listens there, or nobody answers
    denied,      ///< one of the sides does not know the other's secret
    refused      ///< they do not fit: version, TLS
  };
  gate_error(reason r, const std::string& text) : std::runtime_error{text}, why{r} {}
  reason why;
};

/// Connects to a gate and passes it; blocks for `patience` at most, the lookup of the host's name
/// included, however long that hangs. Throws gate_error.
gate_pass pass_gate(const std::string& host, uint16_t port, const shared_secret& secret, bool tls,
                    std::chrono::milliseconds patience, host_lookup look_up = system_lookup);

} // namespace lamella::net
