/// The RDMA adapters of this machine.
#pragma once

#include "net/rdma/verbs.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lamella::net {

/// State of a device or port.
struct verbs_port_report {
  std::string device;
  std::string trouble; ///< empty: usable
};

struct verbs_devices {
  std::string trouble; ///< why there is none at all; empty when `ports` has the reasons
  std::vector<verbs_port_report> ports;
};

/// Checks all ports of all adapters.
verbs_devices look_for_verbs();

/// The first adapter with an active port; null, and the reason in `why`, when there is none.
std::shared_ptr<verbs_device> open_verbs(std::string& why);

} // namespace lamella::net
