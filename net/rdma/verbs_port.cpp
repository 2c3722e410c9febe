#if defined(LAMELLA_HAS_VERBS)

#include "net/rdma/verbs_port.hpp"

#include "base/errno_text.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <arpa/inet.h>

namespace lamella::net {

namespace {

/// Of the addresses of a RoCE port, the one that reaches farthest: an IPv4 address of its network
/// interface, a global IPv6 one, one of the link. Nothing for the first version of RoCE, which no
/// router and no switch port of ours would pass.
int rank_of(const std::string& type, const ibv_gid& gid) {
  if (type != "RoCE v2") return 0;
  constexpr std::array<uint8_t, 12> ipv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::memcmp(gid.raw, ipv4.data(), ipv4.size()) == 0) return 3;
  const bool link_local = gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
  return link_local ? 1 : 2;
}

std::string first_line(const std::string& path) {
  std::ifstream in{path};
  std::string line;
  std::getline(in, line); // an entry that is not in use gives an error: no line
  return line;
}

/// Chooses the address. False when there is none.
bool find_address(verbs_port& port) {
  if (port.attributes.link_layer != IBV_LINK_LAYER_ETHERNET)
    return the_verbs_library().query_gid(port.context.get(), port.number, 0, &port.address) == 0;
  const auto types = "/sys/class/infiniband/" + port.device + "/ports/"
                     + std::to_string(port.number) + "/gid_attrs/types/";
  int best = 0;
  for (int i = 0; i < port.attributes.gid_tbl_len; ++i) {
    ibv_gid gid{};
    const auto type = first_line(types + std::to_string(i));
    if (type.empty()
        || the_verbs_library().query_gid(port.context.get(), port.number, i, &gid) != 0)
      continue;
    if (const auto rank = rank_of(type, gid); rank > best) {
      best = rank;
      port.address_index = i;
      port.address = gid;
    }
  }
  return best > 0;
}

} // namespace

std::string verbs_port::name() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, address.raw, text.data(), text.size());
  return device + " port " + std::to_string(number)
         + (attributes.link_layer == IBV_LINK_LAYER_ETHERNET ? ", RoCE v2 " : ", InfiniBand ")
         + text.data();
}

verbs_port find_port(ibv_device* device, std::string& trouble) {
  const auto& lib = the_verbs_library();
  verbs_port port;
  port.device = lib.device_name(device);
  port.context.reset(lib.open(device));
  if (!port.context || lib.query_device(port.context.get(), &port.limits) != 0) {
    trouble = "cannot be opened: " + errno_text();
    port.context.reset();
    return port;
  }
  for (int i = 1; i <= port.limits.phys_port_cnt; ++i) {
    port.number = static_cast<uint8_t>(i);
    port.attributes = {};
    if (lib.query_port(port.context.get(), port.number, &port.attributes) != 0
        || port.attributes.state != IBV_PORT_ACTIVE)
      trouble = "port " + std::to_string(i) + " is not active";
    else if (!find_address(port))
      trouble = "port " + std::to_string(i)
                + " has no RoCE v2 address: give its network interface an IP address";
    else {
      trouble.clear();
      return port;
    }
  }
  if (trouble.empty()) trouble = "the adapter has no port";
  port.context.reset();
  return port;
}

} // namespace lamella::net

#endif
