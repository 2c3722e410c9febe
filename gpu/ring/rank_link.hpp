/// The channels between two ranks of a tensor-parallel replica.
#pragma once

#include "gpu/ring/channel.hpp"

#include <memory>

namespace lamella::gpu {

/// Both directions between this rank and another one.
struct rank_link {
  std::shared_ptr<channel_sender> to;
  std::shared_ptr<channel_receiver> from;
};

} // namespace lamella::gpu
