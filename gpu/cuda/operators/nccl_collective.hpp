/// Sums over ranks on CUDA devices of one process, with the parts carried by NCCL (L-M03).
#pragma once

#include "gpu/cuda/operators/nccl_library.hpp"
#include "gpu/ring/collective.hpp"

#include <memory>
#include <span>
#include <vector>

namespace lamella::gpu::cuda {

/// One end per device, in the order of the ranks. NCCL gathers the parts and each rank adds them up
/// itself, in ascending order: NCCL's own sum of a row depends on how many rows it is among, for it
/// cuts the whole into pieces that travel in different orders. (n - 1) * rows * width * 4 bytes
/// come to each rank; for two ranks that is what NCCL's sum takes, too.
///
/// NCCL's kernels look at no deadline. When the waits of a rank's stream end, by a deadline or an
/// abort, its end of the communicator is aborted with them, and nothing is added up any more: the
/// group has to be made anew. Connections are made here, so that no launch waits for them.
///
/// Devices must be different. Throws nccl_error and cuda_error.
std::vector<std::shared_ptr<collective>> make_nccl_collectives(const nccl_library& library,
                                                               std::span<const int> devices,
                                                               const operators& ops);

} // namespace lamella::gpu::cuda
