/// Mutual authentication of the two sides of a link before the first frame.
///
///   connecting side                          accepting side
///   hello: which link, which terms, nonce →
///                                          ← challenge: its nonce, its proof
///   proof (shm: segment and bell)         →
///                                          ← verdict: yes (shm: its bell), or why not
///
/// Links over verbs continue on the same socket, after the proof and with the verdict:
///
///   offer: its queue and memory           →  (with the proof)
///                                          ← offer (with the verdict)
///   verdict, when its word has arrived    →
///                                          ← verdict, when its word has arrived
///
/// All messages have a fixed size, so an unauthenticated peer cannot make us buffer more than one
/// of each.
#pragma once

#include "net/link/link.hpp"
#include "net/rdma/verbs.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace lamella::net {

using nonce = std::array<std::byte, 32>;
using proof_code = std::array<std::byte, 32>; ///< HMAC-SHA256

constexpr uint32_t handshake_magic = 0x4c4d4450;
constexpr uint16_t handshake_version = 2;
/// In place of a transport: a probe without a link; the peer echoes each word.
constexpr uint16_t asks_only = 0xffff;

struct hello {
  uint32_t magic = handshake_magic;
  uint16_t version = handshake_version;
  /// link_transport: shm on unix sockets, tcp or verbs on others; or `asks_only`.
  uint16_t transport = 0;
  uint32_t cluster = 0;
  uint32_t slots = 0;
  uint64_t slot_bytes = 0;
  uint64_t first_counter = 0;
  uint64_t epoch = 0;
  uint32_t stream = 0, replica = 0, shard = 0, unused = 0;
  nonce mine{};

  link_key key() const { return {epoch, stream, replica, shard}; }
  link_terms terms() const { return {slots, slot_bytes, first_counter, {}}; }
};
static_assert(sizeof(hello) == 88);

struct challenge {
  nonce mine{};
  proof_code proof{};
};

struct answer {
  proof_code proof{};
};

/// A side's own queue and memory (verbs).
struct offer {
  verbs_end end;
  proof_code proof{}; ///< as the sides' other proofs, of these bytes too
};
static_assert(sizeof(offer) == 80);

struct verdict {
  uint32_t refused = 0;         ///< 0: yes
  std::array<char, 188> text{}; ///< why, zero-terminated
};

template <class T> std::span<std::byte> bytes_of(T& x) {
  return std::as_writable_bytes(std::span{&x, 1});
}

/// Random bytes. Throws std::runtime_error.
nonce make_nonce();

/// Proof of the secret for this handshake. `side`: "connecting" or "accepting", so that neither
/// proof can be replayed as the other. `more`: further bytes that the proof covers. Throws
/// std::runtime_error.
proof_code prove(std::string_view secret, std::string_view side, const hello& h,
                 const nonce& of_acceptor, std::span<const std::byte> more = {});

/// In constant time.
bool equal(const proof_code& a, const proof_code& b);

/// The error of a hello received over a unix socket or another one; empty: none.
std::string check(const hello& h, bool unix_socket, uint32_t cluster);

/// The hello of a probe.
hello hello_to_ask(uint32_t cluster);

/// The error of terms; empty: none.
std::string check(const link_terms& terms);

/// `other_way`: another transport may do.
verdict refusal(std::string_view text, bool other_way = false);
constexpr uint32_t refused_other_way = 2;
std::string text_of(const verdict& v);

} // namespace lamella::net
