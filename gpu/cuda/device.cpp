#include "gpu/cuda/device.hpp"

#include "gpu/cuda/adapter_memory.hpp"
#include "gpu/cuda/attention/attention_plan.hpp"
#include "gpu/cuda/driver/driver.hpp"
#include "gpu/cuda/driver/peers.hpp"
#include "gpu/cuda/driver/ring_ends.hpp"
#include "gpu/cuda/operators/counter.hpp"
#include "gpu/cuda/operators/matmuls.hpp"
#include "gpu/cuda/operators/nccl_collective.hpp"
#include "gpu/cuda/operators/operators.hpp"
#include "gpu/cuda/rows/sample.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace lamella::gpu::cuda {

namespace {

/// LAMELLA_NCCL is set, and not 0. Not by default: each stream of a replica has a communicator of
/// its own, and NCCL leaves it to its callers that kernels of several of them start in the same
/// order on all devices, which streams that decode and prefill side by side do not see to.
bool nccl_wanted() {
  const char* x = std::getenv("LAMELLA_NCCL");
  return x != nullptr && std::strcmp(x, "0") != 0;
}

class cuda_memory final : public memory {
public:
  cuda_memory(int device, size_t bytes) : device_{device}, size_{bytes} {
    check(cudaSetDevice(device_), "cudaSetDevice");
    data_ = device_memory(bytes);
    trim();
  }
  std::byte* data() override { return data_.get(); }
  size_t size() const override { return size_; }
  void trim() override {
    check(cudaSetDevice(device_), "cudaSetDevice");
    check(cudaMemset(data_.get(), 0, size_), "cudaMemset");
    check(cudaStreamSynchronize(nullptr), "cudaMemset");
  }

private:
  int device_;
  size_t size_;
  std::shared_ptr<std::byte> data_;
};

class cuda_stream final : public stream {
public:
  explicit cuda_stream(std::shared_ptr<driver> on)
      : driver_{std::move(on)}, line_{driver_->open()} {}
  ~cuda_stream() override { driver_->close(line_); }
  void launch(std::shared_ptr<work> x, clock::time_point deadline, mark on_end) override {
    driver_->launch(line_, {std::move(x), deadline, std::move(on_end)});
  }
  void abort() override { driver_->abort(line_); }

private:
  std::shared_ptr<driver> driver_;
  std::shared_ptr<driver::line> line_;
};

class cuda_device final : public device {
public:
  explicit cuda_device(unsigned index) : index_{static_cast<int>(index)} {
    check(cudaSetDevice(index_), "cudaSetDevice");
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties");
    name_ = "cuda:" + std::to_string(index) + " " + properties.name;
    device_class_ = properties.major * 10 + properties.minor;
    keep_pool();
    matmuls::of(index_); // opens the library now, and tells here when it cannot
    driver_ = std::make_shared<driver>(index_);
  }

  std::string name() const override { return name_; }
  const operators& ops() const override { return cuda_operators(); }
  device_numerics numerics() const override { return numerics_of(device_class_); }
  bool lost() const override { return driver_->lost(); }
  team& workers() override { return driver_->workers(); }
  std::unique_ptr<stream> make_stream(std::string) override {
    return std::make_unique<cuda_stream>(driver_);
  }
  std::unique_ptr<memory> allocate(size_t bytes) override {
    return std::make_unique<cuda_memory>(index_, bytes);
  }
  void prepare_works(const work_sizes& most) override {
    if (most.vocabulary > vocabulary_max)
      throw std::runtime_error{name_ + " samples from up to " + std::to_string(vocabulary_max)
                               + " tokens; the model has " + std::to_string(most.vocabulary)};
    driver_->reserve(argument_bytes_most(most.attended, most.rows)
                     + draw_argument_bytes(std::min(most.draws, usual_draws), most.vocabulary));
  }
  bool prepare_streams(size_t count) override { return driver_->prepare(count); }
  uint64_t free_bytes() const override {
    size_t free = 0, all = 0;
    check(cudaSetDevice(index_), "cudaSetDevice");
    check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
    return free + unused_of_pool();
  }
  void write(std::byte* to, std::span<const std::byte> from) override {
    copy(to, from.data(), from.size(), cudaMemcpyHostToDevice);
  }
  void read(std::span<std::byte> to, const std::byte* from) override {
    copy(to.data(), from, to.size(), cudaMemcpyDeviceToHost);
  }
  bool on_host() const override { return false; }

  /// In the receiver's memory where the peer is this device or one that reaches it; else in host
  /// memory that both map. This device sends, unless the peer is the host.
  std::shared_ptr<std::byte> ring_memory(size_t bytes, const device& peer) override {
    if (const auto* other = dynamic_cast<const cuda_device*>(&peer))
      return peer_ring_memory(index_, other->index_, bytes);
    check(cudaSetDevice(index_), "cudaSetDevice");
    auto memory = pinned_memory(bytes);
    check(cudaMemset(memory.get(), 0, bytes), "cudaMemset");
    check(cudaStreamSynchronize(nullptr), "cudaMemset");
    return memory;
  }
  std::shared_ptr<channel_sender> make_sender(ring_place place, ring_identity self) override {
    const bool host = holds_words_on_host(place);
    return make_ring_sender(std::move(place), self, host);
  }
  std::shared_ptr<channel_receiver> make_receiver(ring_place place) override {
    const bool host = holds_words_on_host(place);
    return make_ring_receiver(std::move(place), host);
  }
  uint64_t* map_register(std::span<uint64_t> bell) override {
    return cuda::map_register(index_, name_, bell);
  }
  adapter_memory make_adapter_memory(size_t bytes, size_t host_bytes) override {
    return cuda::make_adapter_memory(index_, name_, bytes, host_bytes);
  }
  std::vector<std::shared_ptr<collective>> make_sums(std::span<const std::shared_ptr<device>> ranks,
                                                     std::string& why) override {
    std::vector<int> indices;
    for (const auto& rank : ranks) {
      const auto* other = dynamic_cast<const cuda_device*>(rank.get());
      if (other == nullptr || std::ranges::count(indices, other->index_) != 0) {
        why = "NCCL needs a CUDA device for each rank";
        return {};
      }
      indices.push_back(other->index_);
    }
    const auto* library = nccl_wanted() ? find_nccl(&why) : nullptr;
    try {
      if (library != nullptr) return make_nccl_collectives(*library, indices, ops());
    } catch (const nccl_error& e) {
      why = e.what();
    }
    if (why.empty()) why = "LAMELLA_NCCL is not set";
    return {};
  }
  std::shared_ptr<counter> make_counter() override {
    check(cudaSetDevice(index_), "cudaSetDevice");
    return make_device_counter();
  }
  std::shared_ptr<doorbell> bell() override { return nullptr; }
  std::vector<std::string> remarks() const override {
    const auto shapes = matmuls::of(index_).untuned();
    if (shapes == 0) return {};
    return {"out of memory while choosing the fastest matmuls of " + std::to_string(shapes)
            + " weight shapes: they take default kernels"};
  }

private:
  cudaMemPool_t pool() const {
    cudaMemPool_t x = nullptr;
    check(cudaDeviceGetDefaultMemPool(&x, index_), "memory pool");
    return x;
  }
  /// What is given back stays in the pool for whoever comes next.
  void keep_pool() const {
    uint64_t all = ~uint64_t{0};
    check(cudaMemPoolSetAttribute(pool(), cudaMemPoolAttrReleaseThreshold, &all), "memory pool");
  }
  uint64_t unused_of_pool() const {
    uint64_t held = 0, used = 0;
    check(cudaMemPoolGetAttribute(pool(), cudaMemPoolAttrReservedMemCurrent, &held), "memory pool");
    check(cudaMemPoolGetAttribute(pool(), cudaMemPoolAttrUsedMemCurrent, &used), "memory pool");
    return held - std::min(held, used);
  }
  static bool holds_words_on_host(const ring_place& ring) {
    cudaPointerAttributes place{};
    const void* words = ring.words != nullptr ? static_cast<const void*>(ring.words) : ring.base;
    check(cudaPointerGetAttributes(&place, words), "memory of a ring");
    return place.type == cudaMemoryTypeHost;
  }
  void copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) const {
    check(cudaSetDevice(index_), "cudaSetDevice");
    check(cudaMemcpy(to, from, bytes, kind), "cudaMemcpy");
    // A short copy from pageable memory returns when it is staged.
    if (kind == cudaMemcpyHostToDevice) check(cudaStreamSynchronize(nullptr), "cudaMemcpy");
  }

  int index_, device_class_ = 0;
  std::string name_;
  std::shared_ptr<driver> driver_;
};

} // namespace

std::unique_ptr<device> open_device(unsigned index) { return std::make_unique<cuda_device>(index); }

} // namespace lamella::gpu::cuda
