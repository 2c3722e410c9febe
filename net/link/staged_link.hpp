/// Links of a device whose memory no transport between processes reaches.
#pragma once

#include "gpu/device.hpp"
#include "net/link/link.hpp"

namespace lamella::net {

/// The ends that streams of `device` use of a link whose `real` ends are a host's: a ring each way
/// in host memory that the device maps, and a stream of `host` that carries frames between them and
/// the real ends, checksums included, so that every transport serves every device. Closing
/// either end closes the link after frames in flight are delivered. Frames are carried as long as
/// one of the two ends is held.
///
/// `terms` and `epoch` are those the link was asked for with. Pinning memory may wait for kernels
/// of the device: to be called while none of them waits for another. Throws std::bad_alloc.
link_end stage(gpu::device& device, gpu::device& host, uint64_t epoch, const link_terms& terms,
               link_end real);

} // namespace lamella::net
