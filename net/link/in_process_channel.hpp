/// A channel between two devices of one process: a ring of slots in ordinary memory.
#pragma once

#include "gpu/ring/ring_end.hpp"

#include <memory>

namespace lamella::net {

/// Both ends of one direction.
struct channel_ends {
  std::shared_ptr<gpu::channel_sender> to;
  std::shared_ptr<gpu::channel_receiver> from;
};

/// A ring of `slots` slots of `slot_bytes` each. Pages become resident when they are first written.
/// The two ends may be used from two threads. Throws std::bad_alloc.
channel_ends make_in_process_channel(size_t slots, size_t slot_bytes);

/// The same with all terms, and with the listeners of its two ends (may be null).
channel_ends make_in_process_channel(const gpu::ring_terms& terms, gpu::ring_identity sender = {},
                                     std::shared_ptr<gpu::listener> of_sender = nullptr,
                                     std::shared_ptr<gpu::listener> of_receiver = nullptr);

} // namespace lamella::net
