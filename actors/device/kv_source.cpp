#include "actors/device/kv_source.hpp"

#include "actors/device/iteration.hpp"
#include "actors/device/shard_pull.hpp"
#include "actors/protocol/pulls.hpp"
#include "actors/shared/exceptions.hpp"
#include "actors/shared/explain.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

using source_ptr = kv_source_actor::stateful_pointer<kv_source_state>;

stream_id stream_to(uint32_t shard) { return stream_id{scheduler::offer_streams + shard}; }

std::shared_ptr<gpu::offer_runner> work_of(source_ptr self, const kv_offer& x) {
  auto& st = self->state;
  const auto& c = st.config;
  auto& link = st.links[x.shard];
  if (!link.to) link = c.links({x.epoch, static_cast<uint32_t>(x.stream), c.seat, x.shard});
  const auto row = c.cache->layer(0);
  const auto heads = x.heads > 0 ? scheduler::head_range{x.first_head, x.heads}
                                 : c.layout.heads(row.kv_heads, x.shard);
  return std::make_shared<gpu::offer_runner>(
      c.cache, c.device->ops(),
      transfer_of(x.stream, x.epoch, x.number, x.runs, heads.first, heads.count,
                  row.row_bytes() / row.kv_heads * heads.count),
      link.from, link.to, gpu::offer_terms{c.hand_over, x.shard, x.iteration, c.may_step});
}

caf::result<kv_moved> on_offer(source_ptr self, const kv_offer& x) try {
  auto& st = self->state;
  if (x.shard >= st.config.shards)
    return caf::make_error(caf::sec::invalid_argument, "an offer to a shard that does not exist");
  if (const auto all = st.config.cache->layer(0).kv_heads; x.first_head + x.heads > all)
    return caf::make_error(caf::sec::invalid_argument,
                           "an offer of heads that are not stored here");
  auto work = work_of(self, x);
  auto promise = self->make_response_promise<kv_moved>();
  // Well or not: from now on nothing of it reads the slots.
  const auto ended = [hand_over = st.config.hand_over, shard = x.shard, number = x.number] {
    if (hand_over) hand_over->end_take(shard, number);
  };
  self->request(st.executor, pull_deadline + answer_timeout, stream_to(x.shard), work_ptr{work},
                pull_deadline)
      .then(
          [=](bool) mutable {
            ended();
            promise.deliver(kv_moved{x.number, work->digest(), work->bytes()});
          },
          [=](caf::error& reason) mutable {
            ended();
            spdlog::warn("offer failed seat={} shard={} pull={} reason=\"{}\"",
                         self->state.config.seat, x.shard, x.number,
                         explain(self->system(), reason));
            promise.deliver(std::move(reason));
          });
  return promise;
} catch (const gpu::channel_ended& e) { // of an epoch that is over
  return caf::make_error(ec::link_cut, std::string{e.what()});
}

} // namespace

kv_source_actor::behavior_type kv_source(kv_source_actor::stateful_pointer<kv_source_state> self,
                                         kv_source_config config, gpu_executor_actor executor) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  self->state.executor = std::move(executor);
  self->link_to(self->state.executor);
  return {
      [self](const kv_offer& x) { return on_offer(self, x); },
      [self](const kv_pull_cancel&) {
        for (uint32_t shard = 0; shard < self->state.config.shards; ++shard)
          self->send(self->state.executor, abort_atom_v, stream_to(shard));
      },
  };
}

} // namespace lamella::actors
