/// Scratch memory for kernels and runners: grows, never shrinks, freed all at once.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace lamella::gpu {

/// Hands out 64-byte aligned memory by bumping a pointer. Not thread-safe: allocate before forking.
class arena {
public:
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
  struct aligned_delete {
    void operator()(std::byte* p) const;
  };
  struct block {
    std::unique_ptr<std::byte, aligned_delete> data;
    size_t size;
  };
  std::vector<block> blocks_;
  size_t block_ = 0; ///< index of the block in use
  size_t used_ = 0;  ///< bytes used of it
};

} // namespace lamella::gpu
