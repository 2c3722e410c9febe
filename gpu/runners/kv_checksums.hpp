/// A checksum for each of some slots of a cache, over all layers, which adds up as parity does
/// (decision 23; reliability A6: scrubbing).
#pragma once

#include "gpu/device.hpp"
#include "gpu/runners/kv_cache.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace lamella::gpu {

/// CRC32C of the content of a slot, layer after layer. A CRC is linear over GF(2): up to a constant
/// of the length, the XOR of the checksums of several rows is the checksum of their XOR. So the
/// members of a pool with parity compare 4 bytes of a slot instead of all of it. The same numbers
/// on every device. Reads layers * slots * row bytes once, in steps of at most 64 KiB.
class checksum_runner final : public work {
public:
  /// `may_step`: whether a step may run now; empty: always.
  checksum_runner(std::shared_ptr<const kv_cache> cache, const operators& ops,
                  std::vector<slot_run> runs, std::function<bool()> may_step);

  progress advance(kernel_context context) override;

  /// One per slot, in the order of the runs; valid when done.
  const std::vector<uint32_t>& sums() const { return sums_; }

private:
  std::shared_ptr<const kv_cache> cache_;
  const operators& ops_;
  std::vector<uint32_t> slots_;
  std::function<bool()> may_step_;
  std::vector<uint32_t> sums_;
  uint32_t layer_ = 0;
  size_t next_ = 0; ///< the slot that is read next
};

/// The XOR of the checksums of a slot at all `members` of a pool, `bytes` bytes at each, where one
/// of them holds the XOR of the others.
uint32_t checksum_of_whole(size_t members, size_t bytes);

} // namespace lamella::gpu
