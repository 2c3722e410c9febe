/// The parity of a pool whose members may be devices of any kind: is it right, what do checksums
/// say of it, and what comes back of it.
#pragma once

#include "gpu/runners/kv_checksums.hpp"
#include "tests/gpu/runners/pull_runs.hpp"
#include "tests/pipeline_runs.hpp"

namespace lamella::test {

/// All bytes of a member's cache.
inline std::vector<std::byte> content_of(gpu::device& on, const gpu::kv_cache& cache) {
  std::vector<std::byte> bytes(cache.bytes());
  on.read(bytes, cache.layer(0).rows);
  return bytes;
}

/// Slots, of all layers, in which the XOR of the first `shards` caches is not the last one's
/// content.
inline uint32_t unprotected(pipeline& p, uint32_t shards) {
  auto sum = content_of(p.device(shards), p.cache(shards));
  for (uint32_t s = 0; s < shards; ++s) {
    const auto rows = content_of(p.device(s), p.cache(s));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] ^= rows[i];
  }
  const auto row = p.cache(0).layer(0).row_bytes();
  uint32_t wrong = 0;
  for (size_t at = 0; at < sum.size(); at += row)
    wrong += std::all_of(sum.begin() + static_cast<ptrdiff_t>(at),
                         sum.begin() + static_cast<ptrdiff_t>(at + row),
                         [](std::byte x) { return x == std::byte{0}; })
                 ? 0
                 : 1;
  return wrong;
}

/// The fixture keeps it.
inline std::shared_ptr<const gpu::kv_cache> borrowed(const gpu::kv_cache& x) {
  return {std::shared_ptr<void>{}, &x};
}

inline std::vector<uint32_t> checksums_of(gpu::device& on, const gpu::kv_cache& cache,
                                          const std::vector<gpu::slot_run>& runs) {
  const auto stream = on.make_stream("check");
  const auto work =
      std::make_shared<gpu::checksum_runner>(borrowed(cache), on.ops(), runs, nullptr);
  REQUIRE(gpu::test::start(*stream, work).get() == gpu::work_status::done);
  return work->sums();
}

/// Of so many slots from slot 0 on, those that differ, by their checksums at all members.
inline std::vector<uint32_t> found_wrong(pipeline& p, uint32_t members, uint32_t slots) {
  std::vector<uint32_t> total(slots), found;
  for (uint32_t m = 0; m < members; ++m) {
    const auto one = checksums_of(p.device(m), p.cache(m), whole(slots));
    for (size_t i = 0; i < total.size(); ++i) total[i] ^= one[i];
  }
  const auto bytes = p.cache(0).layer(0).row_bytes() * p.cache(0).layers();
  for (uint32_t i = 0; i < slots; ++i)
    if (total[i] != gpu::checksum_of_whole(members, bytes)) found.push_back(i);
  return found;
}

/// What a new member on `to` makes of the first `slots` slots of the others, when `lost` of
/// `members` is gone: whether it has the lost one's bytes then. Of the host it must be of the same
/// engine. Pieces do not divide the slots.
inline bool comes_back(pipeline& p, uint32_t members, uint32_t lost, uint32_t slots,
                       gpu::device& to) {
  const auto& like = p.cache(lost);
  const auto row = like.layer(0);
  const auto spare = std::make_shared<gpu::kv_cache>(to, like.layers(), like.slots(), row.kv_heads,
                                                     row.dim, row.type);
  // The first one replaces what is there.
  to.write(spare->layer(0).rows, std::vector<std::byte>(spare->bytes(), std::byte{0x77}));
  const gpu::pull_policy policy{
      [](bool, uint64_t) { return true; },
      [](uint64_t pieces, uint64_t taken) { return std::min<uint64_t>(pieces, taken + 4); }};
  gpu::transfer_launch x;
  x.pull = 1;
  x.head_count = row.kv_heads;
  constexpr uint32_t piece = 7;
  for (uint32_t first = 0; first < slots; first += piece) {
    const auto rows = std::min(piece, slots - first);
    x.pieces.push_back({rows, static_cast<uint32_t>(x.runs.size()), 1});
    x.runs.push_back({first, rows});
  }
  bool same = true;
  for (uint32_t source = 0; source < members; ++source) {
    if (source == lost) continue;
    auto& from = p.device(source);
    gpu::ring_terms terms;
    terms.slot_bytes = gpu::slot_room(piece * row.row_bytes());
    const auto forth = gpu::make_device_ring(from, to, terms);
    const auto back = gpu::make_device_ring(to, from, terms);
    const auto offers = from.make_stream("offers"), pulls = to.make_stream("pulls");
    x.add = false;
    const auto offer = std::make_shared<gpu::offer_runner>(borrowed(p.cache(source)), from.ops(), x,
                                                           back.from, forth.to, gpu::offer_terms{});
    x.add = source != (lost == 0 ? 1 : 0);
    const auto pull = std::make_shared<gpu::pull_runner>(spare, to.ops(), x, forth.from, back.to,
                                                         policy, nullptr);
    auto lent = gpu::test::start(*offers, offer), taken = gpu::test::start(*pulls, pull);
    REQUIRE(lent.get() == gpu::work_status::done);
    REQUIRE(taken.get() == gpu::work_status::done);
    same = same && offer->digest() == pull->digest() && offer->bytes() == pull->bytes();
  }
  const auto made = content_of(to, *spare), wanted = content_of(p.device(lost), like);
  const auto layer = size_t{like.slots()} * row.row_bytes();
  for (uint32_t l = 0; l < like.layers(); ++l)
    same =
        same
        && std::memcmp(made.data() + l * layer, wanted.data() + l * layer, slots * row.row_bytes())
               == 0;
  return same;
}

} // namespace lamella::test
