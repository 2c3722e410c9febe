/// Words by which the blocks of a split product know which of them ends last.
#pragma once

#include <cstdint>

namespace lamella::gpu::cuda {

/// In device memory, one per tile: zeros before a product and after it. Products that run at the
/// same time have their own.
struct split_tickets {
  uint32_t* first = nullptr;
  uint32_t count = 0;
};

/// Enough for products of up to 128 rows by any kernel.
constexpr uint32_t split_tickets_most = 1024;

} // namespace lamella::gpu::cuda
