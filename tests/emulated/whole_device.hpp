/// A whole device of the port: operators, driver and rings of CUDA devices as they are, over
/// streams made of threads and kernels run lane by lane.
#pragma once

#include "gpu/cuda/driver/driver.hpp"
#include "gpu/cuda/driver/ring_ends.hpp"
#include "gpu/cuda/operators/counter.hpp"
#include "gpu/cuda/operators/operators.hpp"

#include <cstring>

namespace lamella::test {

class host_block final : public gpu::memory {
public:
  explicit host_block(size_t bytes) : data_{gpu::cuda::pinned_memory(bytes)}, size_{bytes} {
    trim();
  }
  std::byte* data() override { return data_.get(); }
  size_t size() const override { return size_; }
  void trim() override { std::memset(data_.get(), 0, size_); }

private:
  std::shared_ptr<std::byte> data_;
  size_t size_;
};

class line_stream final : public gpu::stream {
public:
  explicit line_stream(std::shared_ptr<gpu::cuda::driver> on)
      : driver_{std::move(on)}, line_{driver_->open()} {}
  ~line_stream() override { driver_->close(line_); }
  void launch(std::shared_ptr<gpu::work> x, gpu::clock::time_point deadline, mark on_end) override {
    driver_->launch(line_, {std::move(x), deadline, std::move(on_end)});
  }
  void abort() override { driver_->abort(line_); }

private:
  std::shared_ptr<gpu::cuda::driver> driver_; ///< outlives its device, as a CUDA device's does
  std::shared_ptr<gpu::cuda::driver::line> line_;
};

/// All is the host's memory.
class emulated_device : public gpu::device {
public:
  explicit emulated_device(unsigned index = 0)
      : driver_{std::make_shared<gpu::cuda::driver>(0)}, name_{"cuda:" + std::to_string(index)
                                                               + " emulated"} {}
  std::string name() const override { return name_; }
  const gpu::operators& ops() const override { return gpu::cuda::cuda_operators(); }
  team& workers() override { return driver_->workers(); }
  std::unique_ptr<gpu::stream> make_stream(std::string) override {
    return std::make_unique<line_stream>(driver_);
  }
  std::unique_ptr<gpu::memory> allocate(size_t bytes) override {
    return std::make_unique<host_block>(bytes);
  }
  bool prepare_streams(size_t count) override { return driver_->prepare(count); }
  uint64_t free_bytes() const override { return uint64_t{1} << 30; }
  void write(std::byte* to, std::span<const std::byte> from) override {
    std::memcpy(to, from.data(), from.size());
  }
  void read(std::span<std::byte> to, const std::byte* from) override {
    std::memcpy(to.data(), from, to.size());
  }
  bool on_host() const override { return false; }
  std::shared_ptr<std::byte> ring_memory(size_t bytes, const gpu::device&) override {
    auto memory = gpu::cuda::pinned_memory(bytes);
    std::memset(memory.get(), 0, bytes);
    return memory;
  }
  uint64_t* map_register(std::span<uint64_t> bell) override { return bell.data(); }
  gpu::adapter_memory make_adapter_memory(size_t bytes, size_t host_bytes) override {
    gpu::adapter_memory x;
    x.data = ring_memory(bytes, *this);
    x.host = ring_memory(host_bytes, *this);
    x.how = "memory of " + name();
    return x;
  }
  std::shared_ptr<gpu::channel_sender> make_sender(gpu::ring_place place,
                                                   gpu::ring_identity self) override {
    return gpu::cuda::make_ring_sender(std::move(place), self, true);
  }
  std::shared_ptr<gpu::channel_receiver> make_receiver(gpu::ring_place place) override {
    return gpu::cuda::make_ring_receiver(std::move(place), true);
  }
  std::shared_ptr<gpu::counter> make_counter() override { return gpu::cuda::make_device_counter(); }
  std::shared_ptr<gpu::doorbell> bell() override { return nullptr; }

private:
  std::shared_ptr<gpu::cuda::driver> driver_;
  std::string name_;
};

} // namespace lamella::test
