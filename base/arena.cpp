#include "base/arena.hpp"

#include <algorithm>
#include <new>

namespace lamella {

namespace {
constexpr std::align_val_t alignment{64};
constexpr size_t smallest_block = size_t{1} << 20;
} // namespace

arena::arena()
    : arena{[](size_t bytes) {
        return std::shared_ptr<std::byte>{static_cast<std::byte*>(::operator new(bytes, alignment)),
                                          [](std::byte* p) { ::operator delete(p, alignment); }};
      }} {}

void* arena::allocate_bytes(size_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  while (block_ < blocks_.size()) {
    auto& current = blocks_[block_];
    if (current.size - used_ >= bytes) {
      auto* result = current.data.get() + used_;
      used_ += bytes;
      return result;
    }
    ++block_;
    used_ = 0;
  }
  blocks_.push_back(new_block(bytes));
  block_ = blocks_.size() - 1;
  used_ = bytes;
  return blocks_.back().data.get();
}

/// As large as all before it, so that there are few; where there is no room for that, as large as
/// it must be.
arena::block arena::new_block(size_t bytes) const {
  const auto size = std::max({bytes, smallest_block, capacity()});
  try {
    return {source_(size), size};
  } catch (const std::bad_alloc&) {
    if (size == bytes) throw;
    return {source_(bytes), bytes};
  }
}

size_t arena::capacity() const {
  size_t total = 0;
  for (const auto& b : blocks_) total += b.size;
  return total;
}

} // namespace lamella
