/// An opened adapter and the port of it that links use. For sources of the verbs tier.
#pragma once

#include "net/rdma/verbs_library.hpp"

#include <memory>
#include <string>

namespace lamella::net {

struct close_context {
  void operator()(ibv_context* x) const { the_verbs_library().close(x); }
};

/// An active port with an address.
struct verbs_port {
  std::unique_ptr<ibv_context, close_context> context;
  std::string device;
  uint8_t number = 1;
  int address_index = 0; ///< of the GID
  ibv_gid address{};
  ibv_port_attr attributes{};
  ibv_device_attr limits{};

  std::string name() const;
};

/// The same, or why there is none on this device.
verbs_port find_port(ibv_device* device, std::string& trouble);

} // namespace lamella::net
