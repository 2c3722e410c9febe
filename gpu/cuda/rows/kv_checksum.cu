#include "base/crc32c.hpp"
#include "gpu/cuda/rows/kv_checksum.hpp"
#include "gpu/cuda/stream/launch.cuh"

namespace lamella::gpu::cuda {

namespace {

constexpr unsigned threads = 128;
constexpr uint32_t lanes = 32;

/// A remainder modulo the polynomial of CRC32C is a word whose highest bit is the coefficient of
/// x^0. What follows a message multiplies its remainder by x for each bit.
__host__ __device__ constexpr uint32_t times_x(uint32_t a) {
  return (a >> 1) ^ (a % 2 != 0 ? 0x82f63b78u : 0u);
}

__host__ __device__ constexpr uint32_t times(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t i = 0; i < 32; ++i, b = times_x(b))
    if ((a >> (31 - i)) % 2 != 0) product ^= b;
  return product;
}

constexpr uint32_t power_of_x(uint32_t n) {
  auto result = uint32_t{1} << 31;
  for (; n > 0; --n) result = times_x(result);
  return result;
}

static_assert(power_of_x(8 + 31) == crc32c_byte(1)); // a byte is eight of them

/// What a lane multiplies by: from its word to the next one, and from its last word to the end.
struct lane_factors {
  uint32_t step[32]; ///< x^1024 times the coefficient of x^i
  uint32_t tail[lanes];
};

constexpr lane_factors factors = [] {
  lane_factors x{};
  auto step = power_of_x(32 * lanes);
  for (auto& s : x.step) {
    s = step;
    step = times_x(step);
  }
  for (uint32_t lane = 0; lane < lanes; ++lane) x.tail[lane] = power_of_x(32 * (lanes - lane));
  return x;
}();

struct checksum_args {
  kv_checksum what;
  lane_factors by;
};

/// Zeros before a message change nothing, so that the last word is the last lane's.
__global__ void __launch_bounds__(threads)
    checksum_rows(const __grid_constant__ checksum_args args) {
  begin_kernel();
  const auto& x = args.what;
  const auto at = (blockIdx.x * threads + threadIdx.x) / lanes;
  const auto lane = threadIdx.x % lanes;
  if (at >= x.count) return;
  const auto* words = reinterpret_cast<const uint32_t*>(x.rows + x.slots[at] * x.row_bytes);
  const auto count = static_cast<uint32_t>(x.row_bytes / sizeof(uint32_t));
  const auto zeros = (lanes - count % lanes) % lanes;
  const auto before = ~x.sums[at];
  uint32_t sum = 0;
  for (auto i = lane; i < count + zeros; i += lanes) {
    uint32_t moved = 0;
#pragma unroll
    for (uint32_t k = 0; k < 32; ++k) moved ^= args.by.step[k] & -(sum >> (31 - k) & 1u);
    auto word = i < zeros ? 0 : words[i - zeros];
    if (i == zeros) word ^= before;
    sum = moved ^ word;
  }
  sum = times(sum, args.by.tail[lane]);
  for (int apart = 16; apart > 0; apart /= 2) sum ^= __shfl_xor_sync(0xffffffffu, sum, apart);
  if (lane == 0) x.sums[at] = ~sum;
}

} // namespace

cudaError_t launch_checksum_kv(const kv_checksum& args, cudaStream_t stream) {
  if (args.count == 0) return cudaSuccess;
  if (args.row_bytes == 0 || args.row_bytes % sizeof(uint32_t) != 0) return cudaErrorInvalidValue;
  constexpr auto slots_of_block = threads / lanes;
  const auto blocks = (args.count + slots_of_block - 1) / slots_of_block;
  launch_kernel(checksum_rows, blocks, threads, 0, stream, checksum_args{args, factors});
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
