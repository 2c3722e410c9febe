/// What the attention launches share: views of a plan in device memory, grids, and the choice of a
/// kernel for a shape.
#pragma once

#include "gpu/cuda/attention/attention_primitives.cuh"

#include <algorithm>
#include <type_traits>

namespace lamella::gpu::cuda {

/// A plan as the kernels see it.
struct plan_view {
  attention_work_header* header;
  const attention_work_unit* units;
  const attention_work_row* rows;
  const attention_work_block* blocks;
  const attention_work_run* runs;
  uint32_t* slots; ///< the slot table

  plan_view(const attention_capacity& c, std::byte* plan)
      : header{reinterpret_cast<attention_work_header*>(plan)},
        units{reinterpret_cast<const attention_work_unit*>(plan + c.units_at())},
        rows{reinterpret_cast<const attention_work_row*>(plan + c.rows_at())},
        blocks{reinterpret_cast<const attention_work_block*>(plan + c.blocks_at())},
        runs{reinterpret_cast<const attention_work_run*>(plan + c.runs_at())},
        slots{reinterpret_cast<uint32_t*>(plan + c.plan_bytes())} {}
};

/// The records of a layer. Sums are [record, H, G, D], then come (maximum, weight) [record, H, G].
struct record_view {
  float* sums;
  float2* ends;
  uint32_t heads, group;

  explicit record_view(const attention_device_args& args)
      : sums{reinterpret_cast<float*>(args.records)}, heads{args.kv_heads}, group{args.group} {
    ends = reinterpret_cast<float2*>(sums + args.capacity.records() * heads * group * args.dim);
  }
  __device__ size_t index(uint32_t record, uint32_t head, uint32_t g) const {
    return (size_t{record} * heads + head) * group + g;
  }
};

/// First half of attend_new: rows of spans of several rows.
cudaError_t launch_attend_rows(const attention_device_args& args, cudaStream_t stream);

/// Launches `kernel` with `shared` bytes of shared memory on as many blocks as run at once, but not
/// more than `most`.
template <class Kernel, class... Args>
cudaError_t launch_resident(Kernel kernel, unsigned threads, size_t shared, uint64_t most,
                            cudaStream_t stream, Args... args) {
  int blocks = 0;
  if (auto error = resident_blocks(kernel, threads, shared, blocks); error != cudaSuccess)
    return error;
  if (blocks == 0) return cudaErrorInvalidConfiguration;
  return launch_blocks(kernel, std::min<uint64_t>(static_cast<unsigned>(blocks), most), threads,
                       shared, stream, args...);
}

/// Calls `f` with the number of elements and of column tiles that a group needs, as constants.
template <class F> cudaError_t with_shape(uint32_t dim, uint32_t group, F f) {
  auto with_columns = [&](auto elements) {
    return group <= 8 ? f(elements, std::integral_constant<int, 1>{})
                      : f(elements, std::integral_constant<int, 2>{});
  };
  if (dim == 64) return with_columns(std::integral_constant<int, 64>{});
  if (dim == 128) return with_columns(std::integral_constant<int, 128>{});
  return cudaErrorInvalidValue;
}

} // namespace lamella::gpu::cuda
