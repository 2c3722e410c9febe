#include "gpu/cuda/driver/launch_window.hpp"

#include "gpu/cuda/stream/check.hpp"

namespace lamella::gpu::cuda {

namespace {

/// Kernels between two marks.
constexpr uint64_t mark_every = 64;

} // namespace

launch_window::~launch_window() {
  for (const auto& x : marks_) cudaEventDestroy(x.event);
  for (auto* x : spare_) cudaEventDestroy(x);
}

void launch_window::note(uint64_t launched, cudaStream_t stream) noexcept {
  launched_ += launched;
  if (launched_ - marked_ < mark_every) return;
  mark x{nullptr, launched_};
  if (spare_.empty()) {
    error_ = cudaEventCreateWithFlags(&x.event, cudaEventDisableTiming);
    if (error_ != cudaSuccess) return;
  } else {
    x.event = spare_.back();
    spare_.pop_back();
  }
  marks_.push_back(x);
  error_ = cudaEventRecord(x.event, stream);
  marked_ = launched_;
}

bool launch_window::full() {
  check(error_, "mark in a stream");
  while (launched_ - passed_ >= most && !marks_.empty()) {
    const auto code = cudaEventQuery(marks_.front().event);
    if (code == cudaErrorNotReady) return true;
    check(code, "mark in a stream");
    passed_ = marks_.front().launched;
    spare_.push_back(marks_.front().event);
    marks_.pop_front();
  }
  return launched_ - passed_ >= most;
}

} // namespace lamella::gpu::cuda
