/// Work requests of mlx5 network adapters, byte by byte; one piece of code for CPU and GPU.
///
/// A work queue entry (WQE) is a row of 16-byte segments, stored from a 64-byte boundary: the unit
/// of a ring is a block of 64 bytes, and every index counts blocks. Fields are big-endian. The
/// layouts are the public ones of the vendor's mlx5dv.h; tests/net/rdma/mlx5/golden_test.cpp
/// compares. Host-bypassed sends need two of them: a write of the payload and a write of the seqno
/// behind it (Lamina, section 4.1), which one reliable connection executes in order without a
/// fence.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define LAMELLA_MLX5 __host__ __device__ inline
/// Before a template that calls what its argument offers, on the side where it is offered.
#define LAMELLA_MLX5_TEMPLATE _Pragma("nv_exec_check_disable")
#else
#define LAMELLA_MLX5 inline
#define LAMELLA_MLX5_TEMPLATE
#endif

namespace lamella::net::mlx5 {

LAMELLA_MLX5 constexpr uint32_t be32(uint32_t x) {
  return x << 24 | (x & 0xff00u) << 8 | (x >> 8 & 0xff00u) | x >> 24;
}
LAMELLA_MLX5 constexpr uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
LAMELLA_MLX5 constexpr uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }

enum opcode : uint32_t {
  op_nop = 0x00,
  op_rdma_write = 0x08,
  op_rdma_write_imm = 0x09,
  op_send = 0x0a,
  op_rdma_read = 0x10,
  op_fetch_add = 0x12,
};

/// Flags of a control segment. Without `flag_completion` a completion is written on errors only.
enum wqe_flag : uint32_t {
  flag_none = 0,
  flag_solicited = 1u << 1,
  flag_completion = 2u << 2,
  flag_small_fence = 1u << 5,
  flag_fence = 4u << 5,
};

constexpr uint32_t inline_bit = 0x80000000u; ///< in the length of a segment that carries its bytes
constexpr uint32_t segment_bytes = 16;
constexpr uint32_t block_bytes = 64;
constexpr uint32_t segments_max = 63; ///< six bits of the control segment

/// 16 bytes as they lie in the ring: words that are big-endian already.
struct alignas(16) segment {
  uint32_t w[4];
};
struct alignas(64) wqe_block {
  segment s[4];
};
static_assert(sizeof(segment) == segment_bytes && sizeof(wqe_block) == block_bytes);

/// A place in registered memory. The key is kept big-endian: it is swapped once, at set-up.
struct region {
  uint64_t address;
  uint32_t key_be;
};

/// First segment of every WQE. `index` counts blocks; the hardware looks at its low 16 bits.
/// `segments` counts this one too.
LAMELLA_MLX5 constexpr segment control_segment(uint32_t op, uint64_t index, uint32_t queue,
                                               uint32_t segments, uint32_t flags,
                                               uint32_t immediate_be = 0) {
  return {{be32((low(index) & 0xffff) << 8 | op), be32(queue << 8 | segments), be32(flags & 0xff),
           immediate_be}};
}
/// Where the bytes go in the peer's memory.
LAMELLA_MLX5 constexpr segment address_segment(region remote) {
  return {{be32(high(remote.address)), be32(low(remote.address)), remote.key_be, 0}};
}
/// Bytes fetched from local memory: 1 … 2^31 - 1 of them; 0 would mean 2 GiB.
LAMELLA_MLX5 constexpr segment data_segment(region local, uint32_t bytes) {
  return {{be32(bytes), local.key_be, be32(high(local.address)), be32(low(local.address))}};
}
/// Eight bytes carried in the WQE itself, in the order in which they shall lie in the peer's
/// memory: the receiver is little-endian, so they are not swapped.
LAMELLA_MLX5 constexpr segment inline_word_segment(uint64_t value) {
  return {{be32(8u | inline_bit), low(value), high(value), 0}};
}
LAMELLA_MLX5 constexpr segment fetch_add_segment(uint64_t add) {
  return {{be32(high(add)), be32(low(add)), 0, 0}};
}

/// Writes `bytes` from `local` to `remote`: 3 segments, 48 of 64 bytes.
LAMELLA_MLX5 constexpr wqe_block write_payload(uint64_t index, uint32_t queue, region remote,
                                               region local, uint32_t bytes, uint32_t flags) {
  return {{control_segment(op_rdma_write, index, queue, 3, flags), address_segment(remote),
           data_segment(local, bytes), segment{}}};
}
/// Writes a seqno that the WQE carries: 3 segments.
LAMELLA_MLX5 constexpr wqe_block write_seqno(uint64_t index, uint32_t queue, region remote,
                                             uint64_t value, uint32_t flags) {
  return {{control_segment(op_rdma_write, index, queue, 3, flags), address_segment(remote),
           inline_word_segment(value), segment{}}};
}
/// Raises a remote word and fetches its old value: 4 segments, a full block. For fabrics where the
/// order of two writes is in doubt: an atomic comes after all writes before it by the standard.
LAMELLA_MLX5 constexpr wqe_block fetch_add(uint64_t index, uint32_t queue, region remote,
                                           uint64_t add, region old_value, uint32_t flags) {
  return {{control_segment(op_fetch_add, index, queue, 4, flags), address_segment(remote),
           fetch_add_segment(add), data_segment(old_value, 8)}};
}
/// Payload and the seqno right behind it, gathered from two places by one write: 4 segments, a full
/// block, so that the whole work request fits one BlueFlame push.
LAMELLA_MLX5 constexpr wqe_block write_with_trailer(uint64_t index, uint32_t queue, region remote,
                                                    region local, uint32_t bytes, region seqno,
                                                    uint32_t flags) {
  return {{control_segment(op_rdma_write, index, queue, 4, flags), address_segment(remote),
           data_segment(local, bytes), data_segment(seqno, 8)}};
}

/// What the doorbell record holds after blocks up to, without, `produced` are in the ring.
LAMELLA_MLX5 constexpr uint32_t record_value(uint64_t produced) {
  return be32(low(produced) & 0xffff);
}
/// The 64-bit store that rings: the first 8 bytes of the last WQE's control segment.
LAMELLA_MLX5 constexpr uint64_t doorbell_value(const segment& control) {
  return control.w[0] | static_cast<uint64_t>(control.w[1]) << 32;
}
/// The same without the length of the WQE, which makes it a doorbell and never a BlueFlame push.
LAMELLA_MLX5 constexpr uint64_t plain_doorbell(uint64_t index, uint32_t queue) {
  return be32((low(index) & 0xffff) << 8) | static_cast<uint64_t>(be32(queue << 8)) << 32;
}

/// The last word of a 64-byte completion: index:16 | signature:8 | opcode:4 … owner:1.
constexpr uint32_t completion_bytes = 64, completion_word_at = 60, syndrome_at = 55;
enum completion_opcode : uint32_t {
  completion_done = 0,
  completion_error = 13,
  completion_never = 15, ///< the host fills completions with 0xff before the queue is used
};
LAMELLA_MLX5 constexpr uint32_t completion_opcode_of(uint32_t word_be) {
  return be32(word_be) >> 4 & 0xf;
}
LAMELLA_MLX5 constexpr uint16_t completion_index_of(uint32_t word_be) {
  return static_cast<uint16_t>(be32(word_be) >> 16);
}

enum syndrome : uint8_t {
  syndrome_none = 0x00,
  syndrome_length = 0x01,
  syndrome_operation = 0x02,
  syndrome_local_protection = 0x04,
  syndrome_flushed = 0x05,
  syndrome_remote_access = 0x13,
  syndrome_retry_exceeded = 0x15,
  syndrome_receiver_not_ready = 0x16,
};

} // namespace lamella::net::mlx5
