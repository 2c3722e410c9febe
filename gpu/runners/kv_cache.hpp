/// Memory layout of the K and V of (layer, slot, head) at a shard.
#pragma once

#include "gpu/device.hpp"
#include "gpu/ring/doorbell.hpp"
#include "gpu/runners/kv_pages.hpp"

#include <cstdint>
#include <memory>

namespace lamella::gpu {

/// [layer][slot][K of the shard's kv heads | V of them]: one contiguous row per token and layer, so
/// that even scattered slots are read in long pieces. Memory becomes resident when slots are used.
class kv_cache {
public:
  kv_cache(device& where, uint32_t layers, uint32_t slots, uint32_t kv_heads, uint32_t dim,
           half_type type)
      : slots_{slots}, layers_{layers}, row_{nullptr, type, kv_heads, dim},
        memory_{where.allocate(size_t{layers} * slots * row_.row_bytes())},
        pages_{where.on_host() ? memory_->data() : nullptr, layers,
               size_t{slots} * row_.row_bytes(), row_.row_bytes(), where.bell()} {}

  kv_layer layer(uint32_t index) const {
    auto result = row_;
    result.rows = memory_->data() + size_t{index} * slots_ * row_.row_bytes();
    return result;
  }

  uint32_t slots() const { return slots_; }
  uint32_t layers() const { return layers_; }
  size_t bytes() const { return memory_->size(); }

  /// Returns all pages to the system; only when no slot is in use.
  void trim() {
    pages_.forget();
    memory_->trim();
  }

  /// Pages of slots that KV is about to be moved to, made resident in the background.
  template <class Runs> kv_pages::ready_flag prepare(const Runs& runs) {
    return pages_.prepare(runs);
  }

  /// Pages of slots in use, and of those behind them, made resident in the background.
  template <class Runs> void keep_ahead(const Runs& runs) { pages_.keep_ahead(runs); }

private:
  uint32_t slots_, layers_;
  kv_layer row_;
  std::unique_ptr<memory> memory_;
  kv_pages pages_;
};

} // namespace lamella::gpu
