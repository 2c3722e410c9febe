#include "base/crc32c.hpp"
#include "gpu/kernels/sets.hpp"

#include <cstring>

namespace lamella::gpu {

namespace {

/// Adds the digest of `bytes` bytes whose first word has this index.
void add_digest(const std::byte* data, size_t bytes, uint64_t index, uint64_t& digest) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes; i += 4, ++index) {
    uint32_t word;
    std::memcpy(&word, data + i, 4);
    sum += word * (index * digest_factor | 1);
  }
  digest += sum;
}

/// Calls copy(place in the cache, place in the packed rows, bytes) for K and V of every row, and
/// adds what `counted` names of the two to the digest.
template <class F, class G> void copy_kv(const copy_kv_args& args, F copy, G counted) {
  const auto half = args.head_count * args.kv.head_bytes();
  const auto k = args.kv.k_offset(args.first_head);
  const auto v = args.kv.v_offset(args.first_head);
  const auto stride = args.kv.row_bytes();
  auto* packed = args.packed;
  auto word = args.first_word;
  for (const auto& run : args.runs)
    for (uint32_t i = 0; i < run.length; ++i, packed += 2 * half, word += 2 * half / 4) {
      auto* row = args.kv.rows + (size_t{run.first} + i) * stride;
      copy(row + k, packed, half);
      copy(row + v, packed + half, half);
      add_digest(counted(row + k, packed), half, word, *args.digest);
      add_digest(counted(row + v, packed + half), half, word + half / 4, *args.digest);
    }
}

} // namespace

// The digest is of the cache on both sides: the copies and the frame between them are checked as
// well. Of rows that are added only the frame is there.

void gather_kv_of(const copy_kv_args& args, kernel_context) {
  copy_kv(
      args,
      [](std::byte* row, std::byte* packed, size_t bytes) { std::memcpy(packed, row, bytes); },
      [](const std::byte* row, const std::byte*) { return row; });
}

void scatter_kv_of(const copy_kv_args& args, kernel_context) {
  if (args.add)
    copy_kv(
        args,
        [](std::byte* __restrict row, const std::byte* __restrict packed, size_t bytes) {
          for (size_t b = 0; b < bytes; ++b) row[b] ^= packed[b];
        },
        [](const std::byte*, const std::byte* packed) { return packed; });
  else
    copy_kv(
        args,
        [](std::byte* row, std::byte* packed, size_t bytes) { std::memcpy(row, packed, bytes); },
        [](const std::byte* row, const std::byte*) { return row; });
}

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
