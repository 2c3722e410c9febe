// How near the matmuls and the small kernels are to the device's limits, measured in the same
// process: copy bandwidth, the best product of the library at each number of rows, and ours, which
// may only use kernels that give a row the same bytes in any batch.
//
//   gemm_bench [shape…]      names or parts of names; none: all
#include "gpu/cuda/bench/gemm_support.cuh"
#include "gpu/cuda/bench/target.hpp"
#include "gpu/cuda/gemm/gemm.hpp"
#include "gpu/cuda/rows/sample.hpp"
#include "gpu/cuda/rows/wire.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

using namespace lamella::gpu;
using namespace lamella::gpu::cuda;
using namespace lamella::gpu::cuda::bench;

namespace {

/// The fastest of what the library offers, split sums included. Each candidate over few calls, the
/// best again over many.
double best_of_library(gemm& matmuls, std::span<const dense_matrix> weights, const void* x,
                       uint32_t rows, float* out, memory& room, size_t room_bytes) {
  const auto& w = weights[0];
  product p{w.type, rows, w.outputs, w.inputs, w.data, x, out, w.outputs};
  auto run = [&](const algorithm& a) {
    return [&, a](int i) {
      p.w = weights[static_cast<size_t>(i) % weights.size()].data;
      return matmuls.run_one(a, p, 1, room.get(), room_bytes, stream);
    };
  };
  std::vector<std::pair<double, algorithm>> found;
  for (const auto& a : matmuls.offers(p, 1, true, 32))
    if (const auto took = time(4, run(a)); took > 0) found.emplace_back(took, a);
  std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.first < b.first; });
  double best = 0;
  for (size_t i = 0; i < std::min<size_t>(found.size(), 3); ++i) {
    const auto took = time(16, run(found[i].second));
    if (best == 0 || took < best) best = took;
  }
  return best;
}

std::string name_of(const algorithm& a) {
  return a.library ? "library" : std::string{mma_variant_name(a.variant)};
}

struct shape {
  const char* name;
  uint32_t inputs, outputs;
};
constexpr shape shapes[]{
    {"70B-qkv", 8192, 10240},   {"70B-out", 8192, 8192},  {"70B-gateup", 8192, 57344},
    {"70B-down", 28672, 8192},  {"8B-qkv", 4096, 6144},   {"8B-out", 4096, 4096},
    {"8B-gateup", 4096, 28672}, {"8B-down", 14336, 4096}, {"8B-head", 4096, 128256}};

__global__ void read_kernel(const float4* x, size_t count, float* out) {
  float sum = 0;
  const size_t stride = size_t{gridDim.x} * blockDim.x;
#pragma unroll 8
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const float4 v = x[i];
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum == 1.2345f) *out = sum; // never; keeps the loads
}

__global__ void copy_kernel(const float4* x, size_t count, float4* out) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
#pragma unroll 4
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    out[i] = x[i];
}

struct bandwidth {
  double read, copy; ///< TB/s; a copy counts both ways
};

/// Best of several grids, over memory far larger than the cache.
bandwidth measure_bandwidth() {
  constexpr size_t bytes = size_t{4} << 30;
  auto a = allocate(bytes), b = allocate(bytes);
  auto* x = static_cast<float4*>(a.get());
  auto* y = static_cast<float4*>(b.get());
  bandwidth best{0, 0};
  for (int blocks : {132 * 4, 132 * 8, 132 * 32}) {
    const auto read = time(4, [&](int) {
      read_kernel<<<blocks, 512, 0, stream>>>(x, bytes / 16, static_cast<float*>(b.get()));
      return cudaGetLastError();
    });
    const auto copy = time(4, [&](int) {
      copy_kernel<<<blocks, 512, 0, stream>>>(x, bytes / 16, y);
      return cudaGetLastError();
    });
    best.read = std::max(best.read, bytes / read * 1e-6);
    best.copy = std::max(best.copy, 2 * bytes / copy * 1e-6);
  }
  const auto copy =
      time(4, [&](int) { return cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice, stream); });
  best.copy = std::max(best.copy, 2 * bytes / copy * 1e-6);
  return best;
}

double measure_peak(gemm& matmuls) {
  constexpr uint32_t n = 8192;
  auto w = random_matrix(dense_type::bf16, size_t{n} * n, 1);
  auto x = random_matrix(dense_type::bf16, size_t{n} * n, 2);
  auto out = allocate(size_t{n} * n * 4), room = allocate(gemm::library_workspace);
  const dense_matrix weight{dense_type::bf16, n, n, w.get()};
  const auto took = best_of_library(matmuls, {&weight, 1}, x.get(), n,
                                    static_cast<float*>(out.get()), room, gemm::library_workspace);
  return took == 0 ? 0 : 2.0 * n * n * n / took * 1e-6; // TFLOP/s
}

/// The worst ratios to the library's best at 64 rows and more; 0 before the first.
struct worst_ratios {
  double invariant = 0, fastest = 0;
  static void note(double& worst, double ratio) {
    if (ratio > 0 && (worst == 0 || ratio < worst)) worst = ratio;
  }
};

void measure_shape(const shape& s, double read_tb, double peak_tflop, worst_ratios& worst) {
  constexpr size_t rotate_bytes = size_t{600} << 20;
  const auto bytes = dense_bytes(s.outputs, s.inputs);
  const auto copies = std::max<size_t>(1, (rotate_bytes + bytes - 1) / bytes);
  std::vector<memory> storage;
  std::vector<dense_matrix> weights;
  for (size_t i = 0; i < copies; ++i) {
    storage.push_back(random_matrix(dense_type::bf16, bytes / 2, 10 + i));
    weights.push_back({dense_type::bf16, s.outputs, s.inputs, storage.back().get()});
  }
  constexpr uint32_t rows_most = 512;
  auto x = random_matrix(dense_type::bf16, size_t{rows_most} * s.inputs, 5);
  auto out = allocate(size_t{rows_most} * s.outputs * 4);
  const auto room_bytes = gemm::scratch_bytes(rows_most, s.outputs, s.inputs);
  auto room = allocate(room_bytes);
  gemm own{arithmetic::own}, fastest{arithmetic::fastest};
  for (auto* matmuls : {&own, &fastest}) {
    auto wrong = matmuls->open();
    if (!wrong) wrong = matmuls->tune(weights, stream);
    if (wrong) std::printf("%s: %s\n", s.name, wrong->c_str());
  }
  const weight_shape key{dense_type::bf16, s.outputs, s.inputs};
  for (size_t c = 0; c < row_classes.size(); ++c) {
    const auto rows = row_classes[c];
    if (rows > rows_most) continue;
    const auto best = best_of_library(own, weights, x.get(), rows, static_cast<float*>(out.get()),
                                      room, room_bytes);
    auto ours = [&](gemm& matmuls) {
      if (matmuls.plan_of(key) == nullptr) return 0.0;
      return time(16, [&](int i) {
        const gemm_part part{weights[static_cast<size_t>(i) % weights.size()],
                             static_cast<float*>(out.get()), s.outputs};
        return matmuls.run(x.get(), rows, {&part, 1}, room.get(), room_bytes, stream);
      });
    };
    const double own_us = ours(own), fastest_us = ours(fastest);
    if (rows >= 64 && own_us > 0) worst_ratios::note(worst.invariant, best / own_us);
    if (rows >= 64 && fastest_us > 0) worst_ratios::note(worst.fastest, best / fastest_us);
    const double floor =
        std::max(bytes / read_tb * 1e-6, 2.0 * rows * s.outputs * s.inputs / peak_tflop * 1e-6);
    std::printf("%-11s %4u %8.1f %8.1f %8.1f | %8.1f %5.2f", s.name, rows, floor, best, fastest_us,
                own_us, own_us > 0 ? best / own_us : 0);
    if (const auto* plan = own.plan_of(key); plan != nullptr) {
      const auto& found = plan->classes[c];
      std::printf(" %-8s own %8.1f %-8s refused %2u of %2u", name_of(found.best).c_str(),
                  found.own_microseconds, std::string{mma_variant_name(found.own_best)}.c_str(),
                  found.refused, found.offered);
    }
    std::printf(" | of floor %.2f\n", own_us > 0 ? floor / own_us : 0);
  }
  std::fflush(stdout);
}

void print_small(const char* name, double bytes, double took, double copy_tb) {
  std::printf("%-34s %8.2f us %8.3f TB/s %5.2f of copy\n", name, took, bytes / took * 1e-6,
              bytes / took * 1e-6 / copy_tb);
}

/// Element-wise kernels of a 70B layer at 64 rows. They are small: the launch is much of the time.
void measure_small(double copy_tb) {
  constexpr uint32_t rows = 64, d = 8192, ff = 28672, heads = 64, dim = 128;
  auto x = random_floats(rows, 2 * ff), weight = random_floats(1, d), y = random_floats(rows, ff);
  auto half = allocate(size_t{rows} * ff * 2), wire = allocate(size_t{rows} * d * 4);
  auto* fx = static_cast<float*>(x.get());
  auto* fy = static_cast<float*>(y.get());
  auto* fw = static_cast<float*>(weight.get());
  std::vector<uint32_t> at(rows);
  std::vector<double> turns(dim / 2);
  for (uint32_t i = 0; i < rows; ++i) at[i] = i * 97;
  for (uint32_t i = 0; i < dim / 2; ++i) turns[i] = 1.0 / (1 + i);
  auto positions = allocate(rows * 4), frequencies = allocate(turns.size() * 8);
  check(cudaMemcpy(positions.get(), at.data(), rows * 4, cudaMemcpyHostToDevice), "positions");
  check(cudaMemcpy(frequencies.get(), turns.data(), turns.size() * 8, cudaMemcpyHostToDevice),
        "frequencies");
  const dense_copy copy{half.get(), dense_type::bf16};
  auto small = [&](const char* name, double bytes, const std::function<cudaError_t(int)>& work) {
    print_small(name, bytes, time(50, work), copy_tb);
  };
  small("rms_norm 64x8192, copy only", rows * d * 6.0, [&](int) {
    return launch_rms_norm({fx, fw, 1e-5f, rows, d, nullptr}, copy, stream);
  });
  small("silu_mul 64x28672 fused, copy only", rows * ff * 10.0, [&](int) {
    return launch_silu_mul({fx, fx + ff, rows, ff, 2 * ff, nullptr, copy}, stream);
  });
  small("add 64x8192", rows * d * 12.0, [&](int) {
    return launch_add({fx, fy, rows, d, fy}, stream);
  });
  small("narrow 64x8192", rows * d * 6.0,
        [&](int) { return launch_narrow(fx, size_t{rows} * d, copy.type, half.get(), stream); });
  auto angles = allocate(size_t{rows} * (dim / 2) * sizeof(float2));
  check(launch_angles({static_cast<uint32_t*>(positions.get()),
                       static_cast<double*>(frequencies.get()), rows, dim / 2,
                       static_cast<float2*>(angles.get())},
                      stream),
        "angles");
  const rotation turn{static_cast<float2*>(angles.get()), dim, dim / 2, rope_pairing::halves};
  auto index = allocate(rows * sizeof(uint32_t));
  check(cudaMemset(index.get(), 0, rows * sizeof(uint32_t)), "index");
  const wire_part plain{fx, d, 0, heads, dim, wire.get()};
  const wire_part turned{fx, d, 0, heads, dim, wire.get(), turn, fx};
  const auto* all = static_cast<uint32_t*>(index.get());
  small("add and rms_norm 64x8192", rows * d * 18.0, [&](int) {
    return launch_add_rms_norm({fx, fy, rows, d, fy}, {fy, fw, 1e-5f, rows, d, fx}, copy, stream);
  });
  small("rope 64 rows, 64 heads of 128", rows * d * 8.0, [&](int) {
    return launch_rope({fx, fx, rows, heads, heads * dim, turn}, stream);
  });
  small("to_wire 64 rows, 64 heads, f16", rows * d * 6.0, [&](int) {
    return launch_to_wire({{plain}, 1, all, rows, half_type::f16}, stream);
  });
  small("rope and to_wire", rows * d * 10.0, [&](int) {
    return launch_to_wire({{turned}, 1, all, rows, half_type::f16}, stream);
  });
}

void measure_sampling(double copy_tb) {
  constexpr uint32_t rows = 64, vocabulary = 128256;
  auto logits = random_floats(rows, vocabulary);
  auto* x = static_cast<float*>(logits.get());
  // Some tokens stand out, as in a model's rows.
  for (uint32_t m = 0; m < rows; ++m)
    for (uint32_t i = 0; i < 6; ++i) {
      const float high = 12.0f - static_cast<float>(i);
      check(cudaMemcpy(x + size_t{m} * vocabulary + (m * 7919 + i * 104729) % vocabulary, &high, 4,
                       cudaMemcpyHostToDevice),
            "logits");
    }
  auto scratch = allocate(sample_scratch_bytes(rows, vocabulary));
  auto out = allocate(rows * sizeof(sampled_row)), how = allocate(rows * sizeof(sample_record));
  struct kind {
    const char* name;
    float temperature;
    uint32_t top_k;
    float top_p;
    uint32_t logprobs;
  };
  for (const auto& k : {kind{"sample 64x128256 greedy", 0, 0, 1, 0},
                        {"  temperature", 1, 0, 1, 0},
                        {"  top_k 50", 1, 50, 1, 0},
                        {"  top_p 0.9", 1, 0, 0.9f, 0},
                        {"  top_p 0.9, temperature 3", 3, 0, 0.9f, 0},
                        {"  top_k 50, top_p 0.9, 20 logprobs", 1, 50, 0.9f, 21}}) {
    std::vector<sample_record> records;
    for (uint32_t m = 0; m < rows; ++m)
      records.push_back({m, m, 0, 1, k.temperature, k.top_k, k.top_p, 0, k.logprobs, 0, 0});
    check(cudaMemcpy(how.get(), records.data(), records.size() * sizeof(sample_record),
                     cudaMemcpyHostToDevice),
          "records");
    const auto took = time(10, [&](int) {
      return launch_sample({x, rows, vocabulary, static_cast<sample_record*>(how.get()), rows,
                            nullptr, nullptr, nullptr, nullptr, static_cast<float*>(scratch.get()),
                            static_cast<sampled_row*>(out.get())},
                           stream);
    });
    print_small(k.name, size_t{rows} * vocabulary * 4.0, took, copy_tb);
  }
}

} // namespace

int main(int argc, char** argv) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::printf("skipped: no CUDA device\n");
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  check(cudaStreamCreate(&stream), "stream");
  check(cudaEventCreate(&from), "event");
  check(cudaEventCreate(&to), "event");
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0), "device");
  gemm matmuls{arithmetic::fastest};
  if (auto wrong = matmuls.open()) {
    std::fprintf(stderr, "%s\n", wrong->c_str());
    return 1;
  }
  const auto [read_tb, copy_tb] = measure_bandwidth();
  const double peak = measure_peak(matmuls);
  std::printf("%s: read %.2f TB/s, copy %.2f TB/s (both ways), bf16 8192^3 %.0f TFLOP/s\n",
              device.name, read_tb, copy_tb, peak);
  if (peak == 0) return 1;
  measure_small(copy_tb);
  measure_sampling(copy_tb);
  std::printf("\nbf16, microseconds: rows, floor, best library algorithm at these rows, ours where "
              "rows need "
              "not be\ninvariant | row-invariant, best/ours, chosen, our fastest kernel, library "
              "algorithms "
              "and own kernels that agree\n");
  worst_ratios worst;
  for (const auto& s : shapes) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) wanted = wanted || std::strstr(s.name, argv[i]) != nullptr;
    if (wanted) measure_shape(s, read_tb, peak, worst);
  }
  print_target({"products-of-best", 0.97, 1.0}, worst.fastest);
  print_target({"products-row-invariant-of-best", 0.85, 0.95}, worst.invariant);
  std::printf("took %.1f s\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}
