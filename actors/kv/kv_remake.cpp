#include "actors/kv/kv_remake.hpp"

#include "actors/protocol/pulls.hpp"
#include "actors/shared/explain.hpp"
#include "base/buggify.hpp"
#include "scheduler/types.hpp"

namespace lamella::actors {

namespace {

struct progress {
  caf::event_based_actor* self = nullptr;
  kv_remake what;
  std::function<void(const std::optional<remake_failure>&)> done;
  uint32_t source = 0;           ///< whose turn it is, by place in the cell
  std::optional<kv_moved> first; ///< what the side that ended first has moved
};
using progress_ptr = std::shared_ptr<progress>;

/// One side may wait for the other for as long as it has time: not for one that has failed.
void cancel(const progress& x) {
  const auto& target = x.what.members[x.what.target];
  const auto& source = x.what.members[x.source];
  x.self->send(target.shard, kv_pull_cancel{stream_id{scheduler::member_streams + source.number}});
  x.self->send(source.shard, kv_pull_cancel{stream_id{scheduler::offer_streams + target.number}});
}

void end(const progress_ptr& x, const std::optional<remake_failure>& failure) {
  auto told = std::exchange(x->done, nullptr);
  if (!told) return;
  if (failure) cancel(*x);
  told(failure);
}

void take_from(const progress_ptr& x);

void on_moved(const progress_ptr& x, uint32_t source, const kv_moved& answer) {
  if (!x->done || source != x->source) return;
  if (!x->first) {
    x->first = answer;
    return;
  }
  if (x->first->digest != answer.digest || x->first->bytes != answer.bytes
      || buggify(buggify_point::remake_fails)) {
    if (x->what.metrics) x->what.metrics->kv_damaged(net::kv_damage::rebuild);
    end(x, remake_failure{"KV transfer from member "
                              + std::to_string(x->what.members[source].number) + ": digests differ",
                          true});
    return;
  }
  x->first.reset();
  ++x->source;
  take_from(x);
}

/// The next member lends its rows to the target.
void take_from(const progress_ptr& x) {
  const auto& w = x->what;
  if (x->source == w.target) ++x->source;
  if (x->source == w.members.size()) {
    end(x, std::nullopt);
    return;
  }
  const auto source = x->source;
  const bool is_first = source == (w.target == 0 ? 1 : 0);
  const auto& lender = w.members[source];
  const auto& target = w.members[w.target];
  const stream_id stream{scheduler::member_streams + lender.number};
  const auto moved = [x, source](const kv_moved& answer) { on_moved(x, source, answer); };
  const auto failed = [x](const caf::error& e) {
    end(x, remake_failure{explain(x->self->system(), e)});
  };
  x->self
      ->request(lender.shard, w.timeout,
                kv_offer{stream, w.epoch, w.number, target.number, w.runs, 0})
      .then(moved, failed);
  x->self->request(target.shard, w.timeout, kv_pull{stream, w.epoch, w.number, w.runs, !is_first})
      .then(moved, failed);
}

} // namespace

void remake(caf::event_based_actor* self, kv_remake what,
            std::function<void(const std::optional<remake_failure>& failure)> done) {
  auto x = std::make_shared<progress>();
  x->self = self;
  x->what = std::move(what);
  x->done = std::move(done);
  if (x->what.runs.empty())
    end(x, std::nullopt);
  else
    take_from(x);
}

} // namespace lamella::actors
