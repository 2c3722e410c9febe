/// The live autoscaler in a simulated run.
#include "scheduler/planner/simulator_run.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace lamella::scheduler::decoding {

namespace {

/// Bounds of a pool that stays as it is.
autoscaling::bounds or_fixed(autoscaling::bounds bounds, uint32_t members) {
  return bounds.most > 0 ? bounds : autoscaling::bounds{members, members};
}

pool_look pool_of(uint32_t members, autoscaling::bounds bounds, size_t loading) {
  const auto b = or_fixed(bounds, members);
  pool_look x;
  x.members = members;
  x.least = b.least;
  x.most = b.most;
  if (loading > 0) x.wanted = members + static_cast<uint32_t>(loading);
  return x;
}

/// 0 where there is no sample.
scaling_seconds p99(const distribution& x) {
  return scaling_seconds{x.count() > 0 ? x.quantile(0.99) : 0};
}

/// Heads that limit the number of memory devices; 0 where they do not.
uint32_t heads_of(const decode_design& design, const cost_model& cost) {
  return design.partition == partition_kind::heads ? cost.model().kv_heads : 0;
}

} // namespace

/// Throws std::invalid_argument for bounds that the design cannot follow.
void run::begin_autoscaling() {
  const auto& o = *options_.autoscale;
  scaling_.emplace(scaling_state{o, scaling_policy{o.settings}, kv_.pools[0].slots()});
  scaling_->spans.emplace_back();
  const auto wrong = [](const std::string& why) {
    throw std::invalid_argument{"autoscaling: " + why};
  };
  const auto& memory = o.pools[scaled_pool::attention];
  const auto& prompts = o.pools[scaled_pool::prefill];
  if (memory.most > 0 && !design_.disaggregated()) wrong("the design has no memory devices");
  if (prompts.most > 0 && !prompts_) wrong("the design has no servers for prompts");
  auto most = design_;
  most.replicas = or_fixed(o.pools[scaled_pool::model], design_.replicas).most;
  most.prefill_servers = or_fixed(prompts, design_.prefill_servers).most;
  bool any = memory.most == 0;
  auto next = design_;
  for (auto count = std::max(1u, memory.least); count <= memory.most; ++count) {
    if (!pool_look{.heads = heads_of(design_, cost_)}.allows(count)) continue;
    next.memory.count = most.memory.count = count;
    any = true;
    if (const auto why = refuse(next, cost_))
      wrong("with " + std::to_string(count) + " x " + next.memory.kind.name + ", " + *why);
    scaling_->least_slots =
        std::min(scaling_->least_slots, static_cast<uint32_t>(slots_per_pool(next, cost_)));
  }
  if (!any)
    wrong("the model's " + std::to_string(cost_.model().kv_heads)
          + " KV heads cannot be spread evenly over " + std::to_string(memory.least) + " to "
          + std::to_string(memory.most) + " memory devices");
  result_.most_device_hours = most.devices() / 3600.0; // of a second; finish() has the seconds
}

/// The autoscaler's turn, if it has come.
void run::look() {
  if (!scaling_ || now_ < scaling_->next_look) return;
  scaling_->next_look = now_ + scaling_->options.look_s;
  const auto x = seen();
  end_span();
  if (options_.on_look) options_.on_look(x);
  if (const auto step = scaling_->policy.look(x).step) obey(*step);
}

/// Latencies, work and rate of the last seconds: what the spans between looks tell together.
void run::measure_window(scaling_look& x) const {
  const auto& first = scaling_->spans.front();
  const auto seconds = now_ - first.from;
  if (seconds <= 0) return;
  distribution tbt, ttft;
  double model = 0, attention = 0, iterations = 0;
  for (const auto& span : scaling_->spans) {
    tbt.add(span.tbt);
    ttft.add(span.ttft);
    model += span.model;
    attention += span.attention;
    iterations += static_cast<double>(span.iterations);
  }
  x.tbt_p99 = p99(tbt);
  x.ttft_p99 = p99(ttft);
  x.model_work = scaling_seconds{model / std::max(1.0, iterations)};
  x.attention_work = scaling_seconds{attention / std::max(1.0, iterations)};
  x.tokens_per_s = static_cast<double>(result_.tokens - first.tokens) / seconds;
  if (!prompts_) return;
  const auto busy = prompts_->busy_s(now_) - first.prompts_busy;
  x.pools[scaled_pool::prefill].busy = std::min(1.0, busy / seconds / design_.prefill_servers);
}

/// The next span begins, and those that the next look's window has not are forgotten.
void run::end_span() {
  auto& spans = scaling_->spans;
  auto& next = spans.emplace_back();
  next.from = now_;
  next.tokens = result_.tokens;
  next.prompts_busy = prompts_ ? prompts_->busy_s(now_) : 0;
  const auto& o = scaling_->options;
  const double window = window_of(o.settings).count();
  while (spans.size() > 1 && scaling_->next_look - spans.front().from > window + o.look_s / 2)
    spans.pop_front();
}

/// The service as a live autoscaler would see it.
scaling_look run::seen() const {
  const auto& o = scaling_->options;
  scaling_look x;
  x.at = scaling_seconds{now_};
  x.pools[scaled_pool::model] =
      pool_of(design_.replicas, o.pools[scaled_pool::model], loading_.size());
  if (design_.disaggregated()) {
    auto& attention = x.pools[scaled_pool::attention];
    attention = pool_of(design_.memory.count, o.pools[scaled_pool::attention], 0);
    attention.heads = heads_of(design_, cost_);
    if (moved_at_ > now_) attention.wanted = attention.members;
  }
  if (prompts_)
    x.pools[scaled_pool::prefill] =
        pool_of(design_.prefill_servers, o.pools[scaled_pool::prefill], loading_prompts_.size());
  measure_window(x);
  for (const auto& p : kv_.pools) {
    x.kv_used += p.used() - p.cached();
    x.kv_slots += p.slots();
  }
  x.kv_wanted = kv_wanted_;
  look_at_queue(x);
  x.tbt_target = o.tbt_target;
  x.ttft_target = o.ttft_target;
  x.batches = design_.concurrent();
  return x;
}

/// Prompts that wait: in the queue, or for those who compute them.
void run::look_at_queue(scaling_look& x) const {
  x.queue = static_cast<uint32_t>(queue_.waiting() + (prompts_ ? prompts_->waiting() : 0));
  auto since = now_;
  if (const auto head = queue_.next(UINT32_MAX, UINT32_MAX))
    since = std::min(since, waits_since(index_of_id(head->first)));
  if (prompts_ && prompts_->oldest())
    since = std::min(since, waits_since(prompts_->oldest()->index));
  for (const auto& b : batches_) // beside decoding
    for (const auto sequence : b.prompts.unbegun()) {
      ++x.queue;
      since = std::min(since, waits_since(index_of_id(sequence)));
    }
  x.queue_age = scaling_seconds{now_ - since};
}

/// One that ran before has waited since its last token.
double run::waits_since(uint32_t index) const {
  return states_[index].answered ? states_[index].token_s : arrival_of(index);
}

void run::obey(const scaling_step& step) {
  result_.steps.push_back({now_, step});
  const auto change = static_cast<int32_t>(step.to) - static_cast<int32_t>(step.from);
  if (step.pool != scaled_pool::prefill)
    return apply({now_, step.pool == scaled_pool::attention, change});
  pay(now_);
  ++result_.scalings;
  if (change > 0)
    load_weights(loading_prompts_, design_.prefill, 1, change);
  else
    scale_prompts(change);
}

/// So many more or fewer servers for prompts, at once.
void run::scale_prompts(int32_t change) {
  pay(now_);
  design_.prefill_servers =
      static_cast<uint32_t>(static_cast<int32_t>(design_.prefill_servers) + change);
  prompts_->resize(design_.prefill_servers);
}

} // namespace lamella::scheduler::decoding
