#include "gpu/runners/kv_checksums.hpp"

#include "base/crc32c.hpp"

#include <algorithm>
#include <array>

namespace lamella::gpu {

namespace {

/// What attention may have to wait for.
constexpr size_t step_bytes = 64 << 10;

} // namespace

checksum_runner::checksum_runner(std::shared_ptr<const kv_cache> cache, const operators& ops,
                                 std::vector<slot_run> runs, std::function<bool()> may_step)
    : cache_{std::move(cache)}, ops_{ops}, may_step_{std::move(may_step)} {
  for (const auto& run : runs)
    for (uint32_t i = 0; i < run.length; ++i) slots_.push_back(run.first + i);
  sums_.resize(slots_.size());
}

work::progress checksum_runner::advance(kernel_context context) {
  if (slots_.empty() || layer_ == cache_->layers()) return progress::done;
  if (may_step_ && !may_step_()) return progress::blocked;
  const auto rows = cache_->layer(layer_);
  const auto most = std::max<size_t>(1, step_bytes / rows.row_bytes());
  const auto count = std::min(slots_.size() - next_, most);
  ops_.checksum_kv(
      {rows, std::span{slots_}.subspan(next_, count), std::span{sums_}.subspan(next_, count)},
      context);
  next_ += count;
  if (next_ < slots_.size()) return progress::advanced;
  next_ = 0;
  return ++layer_ == cache_->layers() ? progress::done : progress::advanced;
}

uint32_t checksum_of_whole(size_t members, size_t bytes) {
  // The constant of each member's checksum: an even number of them leaves nothing.
  if (members % 2 == 0) return 0;
  constexpr std::array<std::byte, 4096> zeros{};
  uint32_t sum = 0;
  for (; bytes > 0; bytes -= std::min(bytes, zeros.size()))
    sum = crc32c(zeros.data(), std::min(bytes, zeros.size()), sum);
  return sum;
}

} // namespace lamella::gpu
