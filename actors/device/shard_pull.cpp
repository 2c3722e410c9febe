#include "actors/device/shard_pull.hpp"

#include "actors/device/iteration.hpp"
#include "actors/protocol/pulls.hpp"
#include "actors/shared/explain.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

/// Nothing is written before the pages are `ready`.
gpu::pull_policy policy_of(const std::shared_ptr<scheduler::pull_pacer>& pacer,
                           gpu::kv_pages::ready_flag ready) {
  return {[pacer, ready = std::move(ready)](bool qkv_waits, uint64_t receives) {
            return (!ready || ready->load()) && pacer->may_step(qkv_waits, receives);
          },
          [pacer](uint64_t pieces, uint64_t taken) { return pacer->grants(pieces, taken); }};
}

/// Runs a side of a transfer, and answers what it has moved.
template <class Work>
caf::result<kv_moved> move(shard_ptr self, stream_id stream, std::shared_ptr<Work> work,
                           caf::timespan limit, uint64_t number, const char* what, uint32_t from,
                           uint32_t to) {
  auto promise = self->make_response_promise<kv_moved>();
  self->request(self->state.executor, limit + answer_timeout, stream, work_ptr{work}, limit)
      .then(
          [promise, work, number](bool) mutable {
            promise.deliver(kv_moved{number, work->digest(), work->bytes()});
          },
          [self, promise, number, what, from, to](caf::error& reason) mutable {
            spdlog::warn("{} failed from={} to={} pull={} reason=\"{}\"", what, from, to, number,
                         explain(self->system(), reason));
            promise.deliver(std::move(reason));
          });
  return promise;
}

} // namespace

stream_id stream_of_transfer(stream_id x) {
  const auto number = static_cast<uint32_t>(x);
  return stream_id{number >= scheduler::member_streams  ? scheduler::member_streams
                   : number >= scheduler::offer_streams ? scheduler::offer_streams
                   : number >= scheduler::move_streams  ? scheduler::move_streams
                                                        : number};
}

gpu::transfer_launch transfer_of(stream_id stream, uint64_t epoch, uint64_t number,
                                 const std::vector<slot_run>& runs, uint32_t first_head,
                                 uint32_t head_count, uint64_t row_bytes) {
  const bool moves = stream_of_transfer(stream) == stream_id{scheduler::move_streams};
  const auto rows = scheduler::piece_rows(row_bytes, moves ? scheduler::move_piece_bytes
                                                           : scheduler::pull_piece_bytes);
  const auto cut = scheduler::cut_rows(runs, rows);
  gpu::transfer_launch x;
  x.epoch = epoch;
  x.pull = number;
  x.first_head = first_head;
  x.head_count = head_count;
  for (const auto& run : cut.runs) x.runs.push_back({run.first, run.length});
  for (const auto& piece : cut.pieces)
    x.pieces.push_back({piece.rows, piece.first_run, piece.run_count});
  return x;
}

caf::result<kv_moved> pull(shard_ptr self, const kv_pull& x) try {
  auto& st = self->state;
  auto& stream = stream_of(self, x.stream, x.epoch);
  const auto& link = stream.links.front(); // of prompts, moves and members: one peer has each
  if (!stream.pacer) stream.pacer = std::make_shared<scheduler::pull_pacer>(scheduler::pull_window);
  const auto row = st.config.cache->layer(0);
  if (x.first_head + x.heads > row.kv_heads)
    return caf::make_error(caf::sec::invalid_argument, "a pull of heads that are not stored here");
  const auto heads = x.heads > 0 ? x.heads : row.kv_heads;
  auto rows = transfer_of(x.stream, x.epoch, x.number, x.runs, x.first_head, heads,
                          row.row_bytes() / row.kv_heads * heads);
  rows.add = x.add;
  // Only pages of a new cache are prepared. A device with queues has no watch, and its memory is
  // resident already.
  const bool moves = st.watch && stream_of_transfer(x.stream) == stream_id{scheduler::move_streams};
  auto ready = moves ? st.config.cache->prepare(x.runs) : nullptr;
  auto work = std::make_shared<gpu::pull_runner>(
      st.config.cache, st.config.device->ops(), std::move(rows), link.from, link.to,
      policy_of(stream.pacer, std::move(ready)), st.watch);
  const bool of_member = static_cast<uint32_t>(x.stream) >= scheduler::member_streams;
  return move(self, stream_of_transfer(x.stream), std::move(work),
              of_member ? lend_deadline : pull_deadline, x.number, "pull",
              static_cast<uint32_t>(x.stream), st.config.seat);
} catch (const gpu::channel_ended& e) { // a link that is made for it, of an epoch that is over
  return caf::make_error(ec::link_cut, std::string{e.what()});
}

caf::result<kv_moved> lend(shard_ptr self, const kv_offer& x) try {
  auto& st = self->state;
  if (!st.config.member_links || x.shard == st.config.seat)
    return caf::make_error(caf::sec::invalid_argument, "an offer without a receiver");
  auto& link = st.lends[x.shard];
  if (!link.to)
    link =
        st.config.member_links({x.epoch, static_cast<uint32_t>(x.stream), st.config.seat, x.shard});
  const auto row = st.config.cache->layer(0);
  auto work = std::make_shared<gpu::offer_runner>(
      st.config.cache, st.config.device->ops(),
      transfer_of(x.stream, x.epoch, x.number, x.runs, 0, row.kv_heads, row.row_bytes()), link.from,
      link.to, gpu::offer_terms{nullptr, x.shard, x.iteration, gaps_of(self)});
  return move(self, stream_id{scheduler::offer_streams}, std::move(work), lend_deadline, x.number,
              "lending", st.config.seat, x.shard);
} catch (const gpu::channel_ended& e) {
  return caf::make_error(ec::link_cut, std::string{e.what()});
}

} // namespace lamella::actors
