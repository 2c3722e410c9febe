#include "base/crc32c.hpp"
#include "gpu/kernels/sets.hpp"

#include <cstring>

namespace lamella::gpu {

void checksum_kv_of(const checksum_kv_args& args, kernel_context) {
  const auto bytes = args.kv.row_bytes();
  for (size_t i = 0; i < args.slots.size(); ++i)
    args.sums[i] = crc32c(args.kv.rows + args.slots[i] * bytes, bytes, args.sums[i]);
}

void gather_rows_of(const gather_rows_args& args, kernel_context) {
  for (size_t i = 0; i < args.row_index.size(); ++i)
    std::memcpy(args.out + i * args.width, args.x + size_t{args.row_index[i]} * args.width,
                args.width * sizeof(float));
}

void copy_for_rope(const rope_args& args) {
  if (args.out == args.x) return;
  for (size_t m = 0; m < args.rows; ++m)
    std::memcpy(args.out + m * args.stride, args.x + m * args.stride,
                size_t{args.heads} * args.dim * sizeof(float));
}

} // namespace lamella::gpu
