/// The header of every frame between devices, the same 64 bytes on every transport.
///
/// Plain C++17, so that device code can use it as well. Fields are little-endian, as are all
/// supported machines.
#pragma once

#include "base/host_device.hpp"

#include <cstddef>
#include <cstdint>

namespace lamella::gpu {

/// Kind of a frame. Within one layer, smaller kinds are sent first.
enum class frame_kind : uint8_t {
  q,         ///< [kv_head][row][group * dim] of the wire type
  kv,        ///< K, then V: [kv_head][row][dim] each
  attention, ///< as q
  credit,    ///< no payload: freed slots, where the sender's ring is not our memory
  pull,      ///< no payload: a shard grants a piece of KV (decision 27)
  rows,      ///< that piece: [row][K of the shard's heads | V of them] of the cache's type
  parity,    ///< of the layers up to this one: the XOR of the shards' `kv` frames
  stored,    ///< no payload: the parity of the whole iteration is in the cache
  ping,      ///< no payload, over sockets: asks for a `pong` to measure the round trip
  pong,      ///< no payload
  partial,   ///< between ranks: [row][width] fp32, one rank's partial sum
  context,   ///< between replicas in rotation: per tensor [row][width] fp32 (L-M21)
};

constexpr uint32_t frame_magic = 0x4c4d4c31; ///< "1LML" in memory
constexpr uint8_t frame_version = 1;

/// `flags`: payload_crc is CRC32C of the payload; without it, the field is 0 and unused.
constexpr uint16_t frame_has_payload_crc = 1;

/// Stored right before its payload. A receiver copies it once and uses only the copy: the peer may
/// still change the memory.
struct alignas(64) frame_header {
  uint32_t magic;
  uint8_t version;
  uint8_t kind; ///< frame_kind
  uint16_t flags;
  uint32_t cluster;       ///< tag of the cluster: frames of other clusters are rejected
  uint16_t seat;          ///< of the sender, checked where it is another process
  uint16_t unused;        ///< 0
  uint64_t epoch;         ///< whole; the seqno carries its low 16 bits
  uint64_t iteration;     ///< of the stream; of a credit: counter up to which slots are freed
  uint64_t table_version; ///< of the sender's slot table
  uint32_t attempt;
  uint32_t layer; ///< of `pull` and `rows`: number of the piece
  uint32_t payload_bytes;
  uint32_t payload_crc;
  uint32_t incarnation; ///< of the sender's seat, checked with it
  uint32_t header_crc;  ///< CRC32C of the 60 bytes before it
};
static_assert(sizeof(frame_header) == 64 && alignof(frame_header) == 64);
static_assert(offsetof(frame_header, cluster) == 8);
static_assert(offsetof(frame_header, seat) == 12);
static_assert(offsetof(frame_header, epoch) == 16);
static_assert(offsetof(frame_header, iteration) == 24);
static_assert(offsetof(frame_header, table_version) == 32);
static_assert(offsetof(frame_header, attempt) == 40);
static_assert(offsetof(frame_header, layer) == 44);
static_assert(offsetof(frame_header, payload_bytes) == 48);
static_assert(offsetof(frame_header, payload_crc) == 52);
static_assert(offsetof(frame_header, incarnation) == 56);
static_assert(offsetof(frame_header, header_crc) == 60);

} // namespace lamella::gpu
