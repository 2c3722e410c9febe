#include "gpu/cuda/driver/trace.hpp"

#include "gpu/cuda/stream/check.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace lamella::gpu::cuda {

namespace {

struct mark {
  std::string what;
  cudaEvent_t when;
};

struct trace_state {
  std::mutex mutex;
  std::vector<cudaEvent_t> events; ///< not used yet
  std::map<cudaStream_t, std::vector<mark>> streams;
};

trace_state& state() {
  static trace_state one;
  return one;
}

} // namespace

void start_trace(size_t marks) {
  auto& x = state();
  std::lock_guard lock{x.mutex};
  while (x.events.size() < marks) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "cudaEventCreate");
    x.events.push_back(event);
  }
  tracing = true;
}

void trace_mark(cudaStream_t stream, std::string_view what) {
  auto& x = state();
  std::lock_guard lock{x.mutex};
  if (x.events.empty()) return;
  const auto event = x.events.back();
  check(cudaEventRecord(event, stream), "trace");
  x.events.pop_back();
  x.streams[stream].push_back({std::string{what}, event});
}

std::vector<traced_kind> end_trace() {
  tracing = false;
  auto& x = state();
  std::lock_guard lock{x.mutex};
  std::map<std::string, traced_kind> kinds;
  int number = 0;
  for (auto& [stream, marks] : x.streams) {
    for (size_t i = 0; i + 1 < marks.size(); ++i) {
      float took = 0;
      check(cudaEventElapsedTime(&took, marks[i].when, marks[i + 1].when), "trace");
      auto& kind = kinds[std::to_string(number) + ": " + marks[i].what];
      ++kind.count;
      kind.milliseconds += took;
    }
    ++number;
    for (auto& m : marks) x.events.push_back(m.when);
  }
  x.streams.clear();
  std::vector<traced_kind> result;
  for (auto& [what, kind] : kinds) {
    kind.what = what;
    result.push_back(kind);
  }
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.milliseconds > b.milliseconds; });
  return result;
}

} // namespace lamella::gpu::cuda
