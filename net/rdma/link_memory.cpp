#include "net/rdma/link_memory.hpp"

#include <new>

#include <sys/mman.h>

namespace lamella::net {

namespace {

constexpr size_t page = 4096;

/// Pages become resident when they are first written.
std::shared_ptr<std::byte> map(size_t bytes) {
  auto* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc{};
  return {static_cast<std::byte*>(p), [bytes](std::byte* x) { munmap(x, bytes); }};
}

} // namespace

link_memory::link_memory(const gpu::ring_terms& rings)
    : rings_{rings}, memory_{map(bytes())}, base_{memory_.get()},
      in_{reinterpret_cast<gpu::ring_control*>(base_ + in_at)},
      out_{reinterpret_cast<gpu::ring_control*>(base_ + out_at())},
      how_{"host memory, where the device's streams use them"} {
  gpu::make_ring(base_ + in_at, rings_);
  gpu::make_ring(base_ + out_at(), rings_);
}

link_memory::link_memory(const std::shared_ptr<gpu::device>& device, const gpu::ring_terms& rings,
                         bool stream_posts)
    : rings_{rings}, device_{device} {
  const auto controls = 2 * sizeof(gpu::ring_control);
  const auto host_bytes = stream_posts ? page + stream_queue_bytes
                                       : controls + rings_.slots * sizeof(gpu::frame_header);
  auto made = device->make_adapter_memory(
      stream_posts ? kept_at() + sizeof(mlx5::send_queue) : bytes(), host_bytes);
  memory_ = std::move(made.data);
  words_ = std::move(made.host);
  base_ = memory_.get();
  dma_buf_ = made.dma_buf;
  how_ = std::move(made.how);
  in_ = reinterpret_cast<gpu::ring_control*>(words_.get());
  out_ = in_ + 1;
  if (stream_posts) {
    static_assert(2 * sizeof(gpu::ring_control) + sizeof(stream_queue_words) <= page);
    posting_ = new (words_.get() + controls) stream_queue_words{};
    queue_place_ = words_.get() + page;
  } else {
    headers_ = reinterpret_cast<gpu::frame_header*>(words_.get() + controls);
  }
  gpu::make_ring(reinterpret_cast<std::byte*>(in_), rings_);
  gpu::make_ring(reinterpret_cast<std::byte*>(out_), rings_);
  alignas(64) std::byte empty[sizeof(gpu::ring_control)] = {};
  gpu::make_ring(empty, rings_);
  device->write(base_ + in_at, empty);
  device->write(base_ + out_at(), empty);
}

const gpu::frame_header& link_memory::header(uint32_t slot) const {
  if (headers_ != nullptr) return headers_[slot];
  return *reinterpret_cast<const gpu::frame_header*>(base_ + out_at()
                                                     + gpu::slot_offset(rings_.slot_bytes, slot));
}

uint64_t link_memory::greeting() const {
  const auto* word = base_ + greeting_at;
  if (!on_device()) return gpu::load(*reinterpret_cast<const gpu::ring_word*>(word));
  uint64_t value = 0;
  try {
    if (const auto device = device_.lock())
      device->read(std::as_writable_bytes(std::span{&value, 1}), word);
  } catch (const std::exception&) {
    return 0; // the device is lost, and its streams know
  }
  return value;
}

uint64_t link_memory::ended() const {
  if (on_device()) return 0;
  return gpu::load(*reinterpret_cast<const gpu::ring_word*>(base_ + ended_at));
}

} // namespace lamella::net
