/// Scratch memory for kernels and runners: grows, never shrinks, freed all at once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace lamella {

/// Hands out memory by bumping a pointer. Not thread-safe: allocate before forking.
class arena {
public:
  /// Where blocks come from: at least so many bytes, 64-byte aligned. Throws std::bad_alloc.
  using block_source = std::function<std::shared_ptr<std::byte>(size_t bytes)>;

  /// Blocks of the heap.
  arena();
  explicit arena(block_source source) : source_{std::move(source)} {}

  /// Takes back everything allocated after its construction.
  class scope {
  public:
    explicit scope(arena& owner) : owner_{owner}, block_{owner.block_}, used_{owner.used_} {}
    ~scope() {
      owner_.block_ = block_;
      owner_.used_ = used_;
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

  private:
    arena& owner_;
    size_t block_, used_;
  };

  /// Uninitialised memory for `count` elements.
  template <class T> T* allocate(size_t count) {
    return static_cast<T*>(allocate_bytes(count * sizeof(T)));
  }

  void* allocate_bytes(size_t bytes);

  /// Everything handed out is free again.
  void reset() { block_ = used_ = 0; }

  /// Gives all memory back to the system; nothing handed out may be in use.
  void release() {
    reset();
    blocks_.clear();
  }

  /// Bytes held, used or not.
  size_t capacity() const;

private:
  struct block {
    std::shared_ptr<std::byte> data;
    size_t size;
  };
  block new_block(size_t bytes) const;

  block_source source_;
  std::vector<block> blocks_;
  size_t block_ = 0; ///< index of the block in use
  size_t used_ = 0;  ///< bytes used of it
};

} // namespace lamella
