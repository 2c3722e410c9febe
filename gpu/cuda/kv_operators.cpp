#include "gpu/cuda/kv_copy.hpp"
#include "gpu/cuda/queue.hpp"

namespace lamella::gpu::cuda {

namespace {

kv_copy ready(queue& q, const copy_kv_args& args) {
  kv_copy x;
  x.cache = args.kv.rows;
  x.row_bytes = args.kv.row_bytes();
  x.k_offset = args.kv.k_offset(args.first_head);
  x.v_offset = args.kv.v_offset(args.first_head);
  x.half_words = static_cast<uint32_t>(args.packed_row_bytes() / 8);
  x.runs = q.upload(args.runs);
  x.run_count = static_cast<uint32_t>(args.runs.size());
  for (const auto& run : args.runs) x.rows += run.length;
  x.packed = args.packed;
  x.first_word = args.first_word;
  x.add = args.add;
  x.digests = q.results<uint64_t>(x.rows);
  q.at_end([digests = x.digests, rows = x.rows, sum = args.digest] {
    for (uint32_t i = 0; i < rows; ++i) *sum += digests[i];
  });
  return x;
}

} // namespace

void gather_kv(const copy_kv_args& args, kernel_context) {
  auto& q = queue::current();
  check(launch_gather_kv(ready(q, args), q.stream("gather_kv")), "gather_kv");
}

void scatter_kv(const copy_kv_args& args, kernel_context) {
  auto& q = queue::current();
  check(launch_scatter_kv(ready(q, args), q.stream("scatter_kv")), "scatter_kv");
}

} // namespace lamella::gpu::cuda
