#include "gpu/cuda/driver/queue.hpp"
#include "gpu/cuda/rows/kv_checksum.hpp"
#include "gpu/cuda/rows/kv_copy.hpp"

#include <algorithm>

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
  // A transfer has any number of pieces: they share the words that its digest is made of.
  x.digests = q.of_work<uint64_t*>(args.digest, [&] {
    auto* parts = q.results<uint64_t>(digest_parts);
    std::fill_n(parts, digest_parts, 0);
    q.at_end([parts, sum = args.digest] {
      for (uint32_t i = 0; i < digest_parts; ++i) *sum += parts[i];
    });
    return parts;
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

void checksum_kv(const checksum_kv_args& args, kernel_context) {
  const auto count = args.slots.size();
  if (count == 0) return;
  auto& q = queue::current();
  // Layer after layer continues in the same words.
  auto* sums = q.of_work<uint32_t*>(args.sums.data(), [&] {
    auto* words = q.results<uint32_t>(count);
    std::copy(args.sums.begin(), args.sums.end(), words);
    q.at_end([words, out = args.sums] { std::copy_n(words, out.size(), out.begin()); });
    return words;
  });
  check(launch_checksum_kv({args.kv.rows, args.kv.row_bytes(), q.upload(args.slots),
                            static_cast<uint32_t>(count), sums},
                           q.stream("checksum_kv")),
        "checksum_kv");
}

} // namespace lamella::gpu::cuda
