#include "gpu/cuda/operators/matmuls.hpp"

#include "gpu/cuda/rows/rows.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

namespace lamella::gpu::cuda {

namespace {

/// Timing rotates through copies of a weight that together exceed any L2.
constexpr size_t rotation_bytes = size_t{160} << 20;
constexpr size_t copies_max = 8;

/// For a trace: "product 14336 + 14336 x 4096".
std::string name_of(std::span<const gemm_part> parts) {
  std::string name = "product ";
  for (const auto& p : parts)
    name += (&p == parts.data() ? "" : " + ") + std::to_string(p.weight.outputs);
  return name + " x " + std::to_string(parts.front().weight.inputs);
}

} // namespace

std::optional<dense_matrix> side_by_side(const dense_matrix& first, const dense_matrix& second) {
  const bool adjacent =
      first.type == second.type && first.outputs == second.outputs && first.inputs == second.inputs
      && static_cast<const std::byte*>(first.data) + dense_bytes(first.outputs, first.inputs)
             == second.data;
  if (!adjacent
      || splits_of(first.outputs, first.inputs) != splits_of(2 * first.outputs, first.inputs))
    return std::nullopt;
  return dense_matrix{first.type, 2 * first.outputs, first.inputs, first.data};
}

matmuls::matmuls() {
  if (auto why = gemm_.open()) throw std::runtime_error{*why};
}

matmuls& matmuls::of(int device) {
  static std::mutex one_at_a_time;
  static std::map<int, std::unique_ptr<matmuls>> all;
  std::lock_guard lock{one_at_a_time};
  auto& place = all[device];
  if (!place) {
    check(cudaSetDevice(device), "cudaSetDevice");
    place.reset(new matmuls);
  }
  return *place;
}

void matmuls::prepare(const dense_matrix& weight) {
  std::lock_guard lock{mutex_};
  tune(weight);
  if (side_by_side(last_prepared_, weight)) tune_twice(weight);
  last_prepared_ = weight;
}

/// For the shape of two such weights side by side. The one before may be gone by now.
void matmuls::tune_twice(const dense_matrix& weight) {
  const weight_shape shape{weight.type, 2 * weight.outputs, weight.inputs};
  if (prepared_.contains(shape)) return;
  const auto bytes = dense_bytes(weight.outputs, weight.inputs);
  std::shared_ptr<std::byte> both;
  try {
    both = device_memory(2 * bytes);
  } catch (const std::bad_alloc&) {
    prepared_.insert(shape);
    ++untuned_;
    return;
  }
  for (auto* half : {both.get(), both.get() + bytes})
    check(cudaMemcpy(half, weight.data, bytes, cudaMemcpyDeviceToDevice), "copy of a weight");
  tune({shape.type, shape.outputs, shape.inputs, both.get()});
}

void matmuls::tune(const dense_matrix& weight) {
  if (!prepared_.insert({weight.type, weight.outputs, weight.inputs}).second) return;
  const auto began = std::chrono::steady_clock::now();
  const auto bytes = dense_bytes(weight.outputs, weight.inputs);
  const auto count = std::clamp<size_t>(rotation_bytes / bytes, 1, copies_max);
  std::vector<dense_matrix> weights{weight};
  std::vector<std::shared_ptr<std::byte>> copies;
  while (weights.size() < count) {
    try {
      copies.push_back(device_memory(bytes));
    } catch (const std::bad_alloc&) {
      break; // fewer to rotate through
    }
    check(cudaMemcpy(copies.back().get(), weight.data, bytes, cudaMemcpyDeviceToDevice),
          "copy of a weight");
    auto copy = weight;
    copy.data = copies.back().get();
    weights.push_back(copy);
  }
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  const auto why = gemm_.tune(weights, stream);
  cudaStreamDestroy(stream);
  if (why) throw std::runtime_error{*why};
  if (gemm_.plan_of({weight.type, weight.outputs, weight.inputs}) == nullptr) ++untuned_;
  seconds_preparing_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

uint32_t matmuls::untuned() const {
  std::lock_guard lock{mutex_};
  return untuned_;
}

double matmuls::seconds_preparing() const {
  std::lock_guard lock{mutex_};
  return seconds_preparing_;
}

void matmuls::run(const float* x, uint32_t rows, std::span<const gemm_part> parts, queue& on) {
  const auto& first = parts.front().weight;
  const auto count = size_t{rows} * first.inputs;
  on.matmuls_read = first.type;
  const auto* narrow = on.copies().of(x, count, first.type);
  if (narrow == nullptr) {
    auto* rounded = on.scratch.allocate<uint16_t>(count);
    check(launch_narrow(x, count, first.type, rounded, on.stream("rounding of activations")),
          "rounding of activations");
    narrow = rounded;
  }
  run(narrow, rows, parts, on);
}

void matmuls::run(const uint16_t* x, uint32_t rows, std::span<const gemm_part> parts, queue& on) {
  const auto& first = parts.front().weight;
  size_t scratch_bytes = 0;
  for (const auto& p : parts) {
    scratch_bytes =
        std::max(scratch_bytes, gemm::scratch_bytes(rows, p.weight.outputs, p.weight.inputs));
    if (p.weight.type != first.type || p.weight.inputs != first.inputs)
      throw std::runtime_error{"matmuls of one input have weights of different types"};
  }
  auto* scratch = on.scratch.allocate<std::byte>(scratch_bytes);
  std::lock_guard lock{mutex_};
  check(gemm_.run(x, rows, parts, scratch, scratch_bytes,
                  on.stream(tracing ? name_of(parts) : std::string{}), on.tickets()),
        "matmul");
}

} // namespace lamella::gpu::cuda
