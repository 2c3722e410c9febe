#include "net/link/link.hpp"

namespace lamella::net {

std::string to_string(const link_key& key) {
  return "epoch " + std::to_string(key.epoch) + ", stream " + std::to_string(key.stream)
         + ", replica " + std::to_string(key.replica) + ", shard " + std::to_string(key.shard);
}

std::string_view to_string(link_transport x) {
  switch (x) {
  case link_transport::in_process:
    return "in_process";
  case link_transport::shm:
    return "shm";
  case link_transport::tcp:
    return "tcp";
  case link_transport::verbs_staged:
    return "verbs_staged";
  case link_transport::verbs_gpudirect:
    return "verbs_gpudirect";
  case link_transport::mlx5_proxy:
    return "mlx5_proxy";
  case link_transport::fhbn:
    return "fhbn";
  }
  return "unknown";
}

std::optional<link_transport> transport_of(std::string_view name) {
  using enum link_transport;
  for (const auto x : {in_process, shm, tcp, verbs_staged, verbs_gpudirect, mlx5_proxy, fhbn})
    if (to_string(x) == name) return x;
  return {};
}

} // namespace lamella::net
