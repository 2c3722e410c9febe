#include "gpu/cuda/driver/replay.hpp"

#include "gpu/cuda/stream/check.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace lamella::gpu::cuda {

namespace {

constexpr size_t kinds_max = 16;

/// Works alike before one is captured: making a graph takes longer than many launches.
constexpr uint32_t seen_least = 3;

constexpr uint64_t empty_signature = 0xcbf29ce484222325;

} // namespace

bool replay_wanted() {
  static const bool on = [] {
    const char* x = std::getenv("LAMELLA_GRAPHS");
    return x == nullptr || std::strcmp(x, "0") != 0;
  }();
  return on;
}

replay::~replay() {
  for (auto& [of, like] : kinds_)
    if (like.exec != nullptr) cudaGraphExecDestroy(like.exec);
}

void replay::begin(cudaStream_t stream) {
  signature = empty_signature;
  if (last_seen_ < seen_least) return;
  // Other threads may allocate meanwhile; what this one does while it captures is known to be safe.
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "capture of a work");
  capturing_ = true;
}

void replay::end(cudaStream_t stream) {
  ++works_;
  auto& like = kinds_[signature];
  last_seen_ = ++like.seen;
  like.last = works_;
  if (capturing_) {
    capturing_ = false;
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream, &graph), "capture of a work");
    launch(like, graph, stream);
  }
  make_room();
}

void replay::stop(cudaStream_t stream) {
  if (!capturing_) return;
  capturing_ = false;
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "capture of a work");
  kind once;
  launch(once, graph, stream);
  check(cudaGraphExecDestroy(once.exec), "graph of a work");
}

void replay::launch(kind& like, cudaGraph_t graph, cudaStream_t stream) {
  if (like.exec != nullptr) {
    cudaGraphExecUpdateResultInfo result{};
    if (cudaGraphExecUpdate(like.exec, graph, &result) != cudaSuccess) {
      cudaGetLastError(); // another graph after all
      cudaGraphExecDestroy(like.exec);
      like.exec = nullptr;
    }
  }
  auto made = cudaSuccess;
  if (like.exec == nullptr) made = cudaGraphInstantiate(&like.exec, graph, 0);
  cudaGraphDestroy(graph);
  check(made, "graph of a work");
  check(cudaGraphLaunch(like.exec, stream), "launch of a work");
}

/// Forgets the kind that has not come for longest. Its last launch may still run: the runtime keeps
/// what that needs.
void replay::make_room() {
  if (kinds_.size() <= kinds_max) return;
  const auto oldest =
      std::min_element(kinds_.begin(), kinds_.end(),
                       [](const auto& a, const auto& b) { return a.second.last < b.second.last; });
  if (oldest->second.exec != nullptr) cudaGraphExecDestroy(oldest->second.exec);
  kinds_.erase(oldest);
}

} // namespace lamella::gpu::cuda
