/// Completions of an mlx5 adapter as the host reads them, where it cannot be told to overwrite one.
#pragma once

#include "net/rdma/mlx5/wqe.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>

namespace lamella::net::mlx5 {

/// A ring of completions that the adapter fills, and the newest of them, where posters look for
/// room: as an adapter leaves it that overwrites one in place.
struct completion_ring {
  std::byte* entries = nullptr;
  uint32_t count = 0;          ///< 2^k
  uint32_t entry_bytes = 0;    ///< 64, or 128 of which the second half counts
  uint32_t* record = nullptr;  ///< tells the adapter how many were taken: 24 bits, big-endian
  std::byte* newest = nullptr; ///< 64 bytes, read by posters at any time
  uint32_t taken = 0;

  /// Takes all that are new, oldest first, up to one that tells of an error: that one stays the
  /// newest. An entry is the adapter's while its owner bit is that of the round before. The adapter
  /// is told before posters are, who then make room for more.
  void take() {
    for (;;) {
      auto* entry =
          entries + size_t{taken & (count - 1)} * entry_bytes + (entry_bytes - completion_bytes);
      auto* word = reinterpret_cast<uint32_t*>(entry + completion_word_at);
      const auto last = std::atomic_ref{*word}.load(std::memory_order_acquire);
      const bool round = (taken & count) != 0, owner = (be32(last) & 1) != 0;
      if (completion_opcode_of(last) == completion_never || owner != round) return;
      std::memcpy(newest, entry, completion_word_at);
      const bool failed = completion_opcode_of(last) != completion_done;
      if (!failed) {
        ++taken;
        std::atomic_ref{*record}.store(be32(taken & 0xffffff), std::memory_order_release);
      }
      std::atomic_ref{*reinterpret_cast<uint32_t*>(newest + completion_word_at)}.store(
          last, std::memory_order_release);
      if (failed) return;
    }
  }
};

} // namespace lamella::net::mlx5
