/// The ends of a ring (gpu/ring/ring.hpp) as a stream of a CUDA device uses them: every step is put
/// into the stream, and the host waits for nothing (L-M07 to L-M11; Lamina 4.1).
#pragma once

#include "gpu/ring/ring_end.hpp"

#include <memory>

namespace lamella::gpu::cuda {

/// The ends of one ring. Use them in steps of one stream only; `base` must be memory the device
/// reaches: its own, a peer's, or mapped host memory (`host_memory`: where its words lie). A frame
/// that is late, missing, or not the expected one ends the waiting work, and the ring with it:
/// counters of the two sides may differ from then on, so the pipeline creates new rings.
std::shared_ptr<channel_sender> make_ring_sender(ring_place place, ring_identity self,
                                                 bool host_memory);
std::shared_ptr<channel_receiver> make_ring_receiver(ring_place place, bool host_memory);

} // namespace lamella::gpu::cuda
