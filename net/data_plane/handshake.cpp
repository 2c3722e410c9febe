#include "net/data_plane/handshake.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace lamella::net {

namespace {

constexpr uint32_t slots_max = 1024;
constexpr uint64_t slot_bytes_max = uint64_t{1} << 30;

} // namespace

nonce make_nonce() {
  nonce result;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(result.data()), static_cast<int>(result.size()))
      != 1)
    throw std::runtime_error{"cannot get random bytes for a nonce"};
  return result;
}

proof_code prove(std::string_view secret, std::string_view side, const hello& h,
                 const nonce& of_acceptor, std::span<const std::byte> more) {
  std::vector<unsigned char> message;
  const auto add = [&](const void* data, size_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    message.insert(message.end(), p, p + bytes);
  };
  constexpr std::string_view purpose = "lamella-link-v1 ";
  add(purpose.data(), purpose.size());
  add(side.data(), side.size());
  add(&h, sizeof h);
  add(of_acceptor.data(), of_acceptor.size());
  add(more.data(), more.size());
  proof_code result;
  unsigned length = 0;
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), message.data(),
           message.size(), reinterpret_cast<unsigned char*>(result.data()), &length)
          == nullptr
      || length != result.size())
    throw std::runtime_error{"HMAC-SHA256 failed"};
  return result;
}

bool equal(const proof_code& a, const proof_code& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

hello hello_to_ask(uint32_t cluster) {
  hello h;
  h.transport = asks_only;
  h.cluster = cluster;
  h.mine = make_nonce();
  return h;
}

std::string check(const hello& h, bool unix_socket, uint32_t cluster) {
  if (h.magic != handshake_magic) return "not a link hello";
  if (h.version != handshake_version)
    return "hello of version " + std::to_string(h.version) + ", expected "
           + std::to_string(handshake_version);
  if (h.cluster != cluster)
    return "hello of cluster " + std::to_string(h.cluster) + ", this is " + std::to_string(cluster);
  if (h.transport == asks_only) return {};
  const auto is = [&](link_transport x) { return h.transport == static_cast<uint16_t>(x); };
  if (unix_socket ? !is(link_transport::shm)
                  : !is(link_transport::tcp) && !is(link_transport::verbs_staged))
    return "hello for a transport other than that of the socket";
  return check(h.terms());
}

std::string check(const link_terms& terms) {
  if (terms.slots == 0 || terms.slots > slots_max)
    return std::to_string(terms.slots) + " slots; a link has 1 to " + std::to_string(slots_max);
  if (terms.slot_bytes == 0 || terms.slot_bytes > slot_bytes_max)
    return "slots of " + std::to_string(terms.slot_bytes) + " bytes; they have 1 to "
           + std::to_string(slot_bytes_max);
  return {};
}

verdict refusal(std::string_view text, bool other_way) {
  verdict v;
  v.refused = other_way ? refused_other_way : 1;
  std::copy_n(text.begin(), std::min(text.size(), v.text.size() - 1), v.text.begin());
  return v;
}

std::string text_of(const verdict& v) {
  const auto end = std::find(v.text.begin(), v.text.end(), '\0');
  std::string text{v.text.begin(), end};
  for (auto& c : text) // it goes to our log
    if (c < ' ' || c > '~') c = '?';
  return text;
}

} // namespace lamella::net
