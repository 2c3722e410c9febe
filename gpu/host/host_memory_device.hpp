/// What all devices have in common whose streams run on threads of the host.
#pragma once

#include "gpu/device.hpp"
#include "gpu/ring/ring_end.hpp"

namespace lamella::gpu {

class host_memory_device : public device {
public:
  uint64_t free_bytes() const override;
  void write(std::byte* to, std::span<const std::byte> from) override;
  void read(std::span<std::byte> to, const std::byte* from) override;
  bool on_host() const override { return true; }
  std::shared_ptr<std::byte> ring_memory(size_t bytes, const device& peer) override;
  std::shared_ptr<channel_sender> make_sender(ring_place place, ring_identity self) override;
  std::shared_ptr<channel_receiver> make_receiver(ring_place place) override;
  std::shared_ptr<counter> make_counter() override;
  std::shared_ptr<doorbell> bell() override { return nullptr; }
};

} // namespace lamella::gpu
