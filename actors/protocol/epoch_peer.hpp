/// A worker as its peers know it: a part of messages about epochs and watches.
#pragma once

#include "actors/protocol/message.hpp"

#include <cstdint>
#include <string>

namespace lamella::actors {

/// A worker of an epoch as its peers see it.
struct epoch_peer {
  std::string seat, address; ///< of its end of the data plane
  uint16_t number = 0;       ///< of the seat; frames carry it with the incarnation
  uint32_t incarnation = 0;
};

} // namespace lamella::actors
LAMELLA_PART(epoch_peer)
