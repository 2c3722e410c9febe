#include "gpu/ring/device_ring.hpp"

#include <new>

namespace lamella::gpu {

namespace {

/// What one end needs to stay as it is: the memory, and its device's habit of looking around.
struct kept {
  std::shared_ptr<std::byte> memory;
  std::unique_ptr<outside_channel> looks_around;
};

std::shared_ptr<void> keep(std::shared_ptr<std::byte> memory, device& mine, const device& peer) {
  auto result = std::make_shared<kept>();
  result->memory = std::move(memory);
  // The streams of one host engine see each other's frames anyway; a device's come by themselves.
  if (auto bell = mine.bell(); bell && !peer.on_host())
    result->looks_around = std::make_unique<outside_channel>(bell);
  return result;
}

} // namespace

device_ring make_device_ring(device& sender, device& receiver, const ring_terms& terms) {
  auto& owner = sender.on_host() ? receiver : sender;
  auto& other = sender.on_host() ? sender : receiver;
  auto memory = owner.ring_memory(terms.bytes(), other);
  alignas(64) std::byte words[sizeof(ring_control)] = {};
  make_ring(words, terms);
  owner.write(memory.get(), words);
  const auto place = [&](device& mine, device& peer) {
    // An end may come from any thread, so it always rings; frames between streams of one host
    // engine come from the driver that would be rung.
    ring_place x{memory.get(), keep(memory, mine, peer), mine.bell(), nullptr, terms};
    if (!mine.on_host() || !peer.on_host()) x.theirs = peer.bell();
    return x;
  };
  return {sender.make_sender(place(sender, receiver), {}),
          receiver.make_receiver(place(receiver, sender))};
}

} // namespace lamella::gpu
