#include "net/in_process_channel.hpp"

#include <atomic>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace lamella::net {

namespace {

/// `sent` and `released` count frames since the start; their difference is the credit in use.
class ring {
public:
  ring(size_t slots, size_t slot_bytes)
      : slots_{slots}, slot_bytes_{(slot_bytes + 63) / 64 * 64}, frames_(slots) {
    auto* p = mmap(nullptr, slots_ * slot_bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc{};
    data_ = static_cast<std::byte*>(p);
  }
  ~ring() { munmap(data_, slots_ * slot_bytes_); }
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;

  size_t slot_bytes() const { return slot_bytes_; }

  std::byte* reserve(size_t bytes) {
    if (bytes > slot_bytes_)
      throw std::length_error("frame of " + std::to_string(bytes) + " bytes in slots of "
                              + std::to_string(slot_bytes_));
    const auto n = sent_.load(std::memory_order_relaxed);
    if (n - released_.load(std::memory_order_acquire) == slots_) return nullptr;
    auto* slot = data_ + n % slots_ * slot_bytes_;
    frames_[n % slots_].payload = {slot, bytes};
    return slot;
  }

  void commit(const gpu::frame_tag& tag) {
    const auto n = sent_.load(std::memory_order_relaxed);
    frames_[n % slots_].tag = tag;
    sent_.store(n + 1, std::memory_order_release);
  }

  const gpu::frame* peek(size_t ahead) {
    const auto n = released_.load(std::memory_order_relaxed) + ahead;
    if (n >= sent_.load(std::memory_order_acquire)) return nullptr;
    return &frames_[n % slots_];
  }

  void release() { released_.fetch_add(1, std::memory_order_release); }

private:
  size_t slots_, slot_bytes_;
  std::byte* data_;
  std::vector<gpu::frame> frames_;
  alignas(64) std::atomic<uint64_t> sent_{0};
  alignas(64) std::atomic<uint64_t> released_{0};
};

class ring_sender final : public gpu::channel_sender {
public:
  explicit ring_sender(std::shared_ptr<ring> r) : ring_{std::move(r)} {}
  std::byte* reserve(size_t bytes) override { return ring_->reserve(bytes); }
  void commit(const gpu::frame_tag& tag) override { ring_->commit(tag); }
  size_t slot_bytes() const override { return ring_->slot_bytes(); }

private:
  std::shared_ptr<ring> ring_;
};

class ring_receiver final : public gpu::channel_receiver {
public:
  explicit ring_receiver(std::shared_ptr<ring> r) : ring_{std::move(r)} {}
  const gpu::frame* peek(size_t ahead) override { return ring_->peek(ahead); }
  void release() override { ring_->release(); }

private:
  std::shared_ptr<ring> ring_;
};

} // namespace

channel_ends make_in_process_channel(size_t slots, size_t slot_bytes) {
  auto shared = std::make_shared<ring>(slots, slot_bytes);
  return {std::make_shared<ring_sender>(shared), std::make_shared<ring_receiver>(shared)};
}

} // namespace lamella::net
