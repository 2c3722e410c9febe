#include "net/link/in_process_channel.hpp"

#include "gpu/ring/ring_end.hpp"

#include <new>

#include <sys/mman.h>

namespace lamella::net {

channel_ends make_in_process_channel(size_t slots, size_t slot_bytes) {
  gpu::ring_terms terms;
  terms.slots = static_cast<uint32_t>(slots);
  terms.slot_bytes = gpu::slot_room(slot_bytes);
  return make_in_process_channel(terms);
}

channel_ends make_in_process_channel(const gpu::ring_terms& terms, gpu::ring_identity sender,
                                     std::shared_ptr<gpu::listener> of_sender,
                                     std::shared_ptr<gpu::listener> of_receiver) {
  const auto bytes = terms.bytes();
  auto* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc{};
  std::shared_ptr<void> memory{p, [bytes](void* x) { munmap(x, bytes); }};
  auto* base = static_cast<std::byte*>(p);
  gpu::make_ring(base, terms);
  return {std::make_shared<gpu::ring_sender>(
              gpu::ring_place{base, memory, of_sender, of_receiver, terms}, sender),
          std::make_shared<gpu::ring_receiver>(
              gpu::ring_place{base, memory, of_receiver, of_sender, terms})};
}

} // namespace lamella::net
