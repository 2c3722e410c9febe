#include "gpu/host/host_memory_device.hpp"

#include "gpu/ring/doorbell.hpp"

#include <atomic>
#include <cstring>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace lamella::gpu {

namespace {

class host_counter final : public counter {
public:
  explicit host_counter(std::shared_ptr<doorbell> bell) : bell_{std::move(bell)} {}

  void raise(uint64_t value) override {
    auto now = value_.load(std::memory_order_relaxed);
    while (now < value
           && !value_.compare_exchange_weak(now, value, std::memory_order_release,
                                            std::memory_order_relaxed)) {
    }
  }
  bool reached(uint64_t value) override { return value_.load(std::memory_order_acquire) >= value; }
  void skip(uint64_t value) override {
    raise(value);
    if (bell_) bell_->ring();
  }

private:
  std::atomic<uint64_t> value_{0};
  std::shared_ptr<doorbell> bell_; ///< of those who wait; null where no thread sleeps
};

} // namespace

uint64_t host_memory_device::free_bytes() const {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES))
         * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void host_memory_device::write(std::byte* to, std::span<const std::byte> from) {
  std::memcpy(to, from.data(), from.size());
}

void host_memory_device::read(std::span<std::byte> to, const std::byte* from) {
  std::memcpy(to.data(), from, to.size());
}

/// Pages become resident when they are first written.
std::shared_ptr<std::byte> host_memory_device::ring_memory(size_t bytes, const device&) {
  auto* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc{};
  return {static_cast<std::byte*>(p), [bytes](std::byte* x) { munmap(x, bytes); }};
}

std::shared_ptr<channel_sender> host_memory_device::make_sender(ring_place place,
                                                                ring_identity self) {
  return std::make_shared<ring_sender>(std::move(place), self);
}

std::shared_ptr<channel_receiver> host_memory_device::make_receiver(ring_place place) {
  return std::make_shared<ring_receiver>(std::move(place));
}

std::shared_ptr<counter> host_memory_device::make_counter() {
  return std::make_shared<host_counter>(bell());
}

} // namespace lamella::gpu
