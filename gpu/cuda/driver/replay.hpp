/// Launching a whole work at once, as a CUDA graph, where works are alike (Lamina, section 5: an
/// iteration's launches do not change while its batch does not).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>

namespace lamella::gpu::cuda {

/// Whether streams do so: LAMELLA_GRAPHS is not 0. Read once.
bool replay_wanted();

/// Of one stream. A work whose kernels follow each other as in works before it is captured instead
/// of launched; its arguments then go into the graph that was made for such works, and one launch
/// runs it. Only the kernels' order and names must agree: sizes and arguments are this work's own.
/// What a work's kernels are is known at its end, so the guess is that it is like one of the works
/// before it; a wrong guess makes another graph. Used by the driver thread.
class replay {
public:
  replay() = default;
  ~replay();
  replay(const replay&) = delete;
  replay& operator=(const replay&) = delete;

  /// Before the first kernel of a work.
  void begin(cudaStream_t stream);
  /// After the last: what was captured is launched. Throws cuda_error.
  void end(cudaStream_t stream);

  /// Launches what was captured so far, and the rest of the work kernel by kernel: before something
  /// that cannot be captured. Throws cuda_error.
  void stop(cudaStream_t stream);

  bool capturing() const { return capturing_; }

  /// What the kernels of the present work have been so far; see launch_count.hpp.
  uint64_t signature = 0;

private:
  struct kind {
    cudaGraphExec_t exec = nullptr;
    uint32_t seen = 0;
    uint64_t last = 0; ///< the work that was like this
  };
  void launch(kind& like, cudaGraph_t graph, cudaStream_t stream);
  void make_room();

  std::map<uint64_t, kind> kinds_; ///< by signature, at most kinds_max
  uint64_t works_ = 0;
  uint32_t last_seen_ = 0; ///< how often works like the last one had been seen
  bool capturing_ = false;
};

} // namespace lamella::gpu::cuda
