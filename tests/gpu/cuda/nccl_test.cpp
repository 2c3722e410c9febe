// NCCL on a CUDA device, with one rank where there is one device.
#include "gpu/cuda/operators/nccl_library.hpp"
#include "gpu/cuda_module.hpp"
#include "tests/gpu/ring/sum_runs.hpp"

#include <doctest/doctest.h>

#include <numeric>

#if defined(LAMELLA_HAS_NCCL)
#include <nccl.h>
static_assert(ncclSuccess == lamella::gpu::cuda::nccl_success);
static_assert(ncclFloat32 == lamella::gpu::cuda::nccl_float32);
#endif

using namespace lamella;

namespace {

/// A sum of what lies in device memory.
class device_sum final : public gpu::work {
public:
  device_sum(std::shared_ptr<gpu::collective> sums, float* x, uint32_t rows, uint32_t width)
      : sums_{std::move(sums)}, x_{x}, rows_{rows}, width_{width} {}
  progress advance(gpu::kernel_context context) override {
    return sums_->all_reduce({{}, x_, rows_, width_}, context) ? progress::done : progress::blocked;
  }

private:
  std::shared_ptr<gpu::collective> sums_;
  float* x_;
  uint32_t rows_, width_;
};

} // namespace

TEST_CASE("L-M03 NCCL carries the parts of sums between all CUDA devices there are") {
  std::string reason;
  const auto* module = gpu::find_cuda_module(&reason);
  const auto count = module == nullptr ? 0 : module->count(&reason);
  if (count == 0) {
    MESSAGE("skipped: no CUDA device (" << reason << ")");
    return;
  }
  std::vector<std::shared_ptr<gpu::device>> devices;
  for (unsigned i = 0; i < count; ++i) devices.push_back(gpu::open_cuda_device(i));
  const auto sums = devices[0]->make_sums(devices, reason);
  if (sums.empty()) {
    MESSAGE("skipped: " << reason);
    return;
  }
  constexpr uint32_t rows = 5, width = 64;
  std::vector<std::unique_ptr<gpu::memory>> places;
  std::vector<std::unique_ptr<gpu::stream>> streams;
  std::vector<std::future<gpu::work_status>> ends;
  std::vector<std::vector<float>> parts;
  for (unsigned r = 0; r < count; ++r) {
    parts.emplace_back(rows * width);
    std::iota(parts[r].begin(), parts[r].end(), static_cast<float>(r) / 7);
    places.push_back(devices[r]->allocate(rows * width * sizeof(float)));
    devices[r]->write(places[r]->data(), std::as_bytes(std::span{parts[r]}));
    streams.push_back(devices[r]->make_stream("sum"));
  }
  for (unsigned r = 0; r < count; ++r)
    ends.push_back(
        test::run_on(*streams[r],
                     std::make_shared<device_sum>(
                         sums[r], reinterpret_cast<float*>(places[r]->data()), rows, width),
                     std::chrono::minutes{1}));
  for (unsigned r = 0; r < count; ++r) {
    CHECK(ends[r].get() == gpu::work_status::done);
    std::vector<float> found(rows * width);
    devices[r]->read(std::as_writable_bytes(std::span{found}), places[r]->data());
    CHECK(found == test::in_order(parts));
  }
}
