#include "gpu/cuda/operators/weight_loader.hpp"

#include "gpu/cuda/driver/memory.hpp"
#include "gpu/cuda/gemm/unpack.hpp"
#include "gpu/cuda/operators/matmuls.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

namespace lamella::gpu::cuda {

namespace {

constexpr size_t piece_bytes = size_t{16} << 20;
constexpr size_t grain = size_t{1} << 18; ///< of one thread's copy

/// One piece on its way: pinned, then raw on the device.
struct piece {
  std::shared_ptr<std::byte> host, device;
  cudaStream_t stream = nullptr;
  size_t size = 0;

  void prepare(size_t bytes) {
    if (stream == nullptr)
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaStreamSynchronize(stream), "loading of weights"); // its memory is free again
    if (bytes <= size) return;
    host = pinned_memory(bytes);
    device = device_memory(bytes);
    size = bytes;
  }
  ~piece() {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
};

void copy(const std::byte* from, size_t bytes, std::byte* to, team& workers) {
  workers.for_each((bytes + grain - 1) / grain, [&](size_t i) {
    const auto at = i * grain;
    std::memcpy(to + at, from + at, std::min(grain, bytes - at));
  });
}

} // namespace

size_t dense_weight_bytes(model::tensor_type, uint32_t outputs, uint32_t inputs) {
  if (inputs % 8 != 0)
    throw std::runtime_error("a weight of " + std::to_string(inputs)
                             + " inputs; CUDA devices need a multiple of 8");
  return dense_bytes(outputs, inputs);
}

void load_weight(model::tensor_type type, const std::byte* rows, uint32_t outputs, uint32_t inputs,
                 std::byte* out, team& workers) {
  cudaPointerAttributes place{};
  check(cudaPointerGetAttributes(&place, out), "memory for weights");
  check(cudaSetDevice(place.device), "cudaSetDevice");
  // Kept from matrix to matrix: pinning takes longer than copying.
  static std::mutex one_at_a_time;
  static std::map<int, std::array<piece, 2>> of_device;
  std::lock_guard lock{one_at_a_time};
  auto& pieces = of_device[place.device];
  const auto row = model::row_bytes(type, inputs);
  const auto step = static_cast<uint32_t>(std::clamp<size_t>(piece_bytes / row, 1, outputs));
  size_t turn = 0;
  for (uint32_t n = 0; n < outputs; n += step, ++turn) {
    auto& p = pieces[turn % pieces.size()];
    const auto count = std::min(step, outputs - n);
    p.prepare(step * row);
    copy(rows + n * row, count * row, p.host.get(), workers);
    check(cudaMemcpyAsync(p.device.get(), p.host.get(), count * row, cudaMemcpyHostToDevice,
                          p.stream),
          "loading of weights");
    check(
        launch_unpack(type, p.device.get(), count, inputs, out + size_t{n} * inputs * 2, p.stream),
        "unpacking of weights");
  }
  for (auto& p : pieces)
    if (p.stream != nullptr) check(cudaStreamSynchronize(p.stream), "loading of weights");
  matmuls::of(place.device).prepare({dense_type_of(type), outputs, inputs, out});
}

} // namespace lamella::gpu::cuda
