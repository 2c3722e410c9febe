/// Devices that die in a simulated run, come, or go.
#include "scheduler/planner/simulator_run.hpp"

#include "scheduler/kv/kv_grants.hpp"
#include "scheduler/kv/kv_moving.hpp"
#include "scheduler/placement.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace lamella::scheduler::decoding {

/// Seconds of computing again what a device took along: all KV of memory devices by head, that of
/// one of them by request, that of one server.
double run::lost_kv(const failure_event& event, uint32_t which) {
  const bool all = event.memory_device && kv_.pools.size() == 1;
  if (design_.disaggregated() && !event.memory_device) return 0;
  const auto pool = which % static_cast<uint32_t>(kv_.pools.size());
  double seconds = 0;
  for (uint32_t index = 0; index < states_.size(); ++index) {
    const auto& s = states_[index];
    if ((s.at != place::seated && s.at != place::joining) || (!all && s.pool != pool)) continue;
    const auto since = s.at == place::seated ? batches_[s.batch].iteration - s.joined_at : 0;
    const auto tokens = trace_[index].prompt_tokens
                        + (s.at == place::seated ? s.joined_generated : s.generated)
                        + static_cast<uint32_t>(since);
    result_.recomputed_tokens += tokens;
    seconds += cost_.prefill_s(design_.compute, tokens);
  }
  // Several prompts are under way at once, one in each stage.
  return seconds / (design_.disaggregated() ? design_.groups() : design_.stages);
}

/// Devices that have died since the last look. What runs goes on where it was when they are back.
void run::fail() {
  while (!failures_.empty() && failures_.front().at_s <= now_) {
    const auto event = failures_.front();
    failures_.erase(failures_.begin());
    const auto which = static_cast<uint32_t>(result_.failures++);
    const auto until = now_ + event.repair_s + lost_kv(event, which);
    const bool one_replica =
        !event.memory_device
        && (!design_.disaggregated() || design_.pipeline == pipeline_kind::fixed);
    for (uint32_t j = 0; j < batches_.size(); ++j) {
      auto& b = batches_[j];
      const auto replica = design_.disaggregated() ? j % design_.replicas : server_of(j);
      if (one_replica && replica != which % design_.replicas) continue;
      const auto from = std::max({now_, blocked_until_, b.blocked_until});
      if (b.running && until > from) b.end += until - from;
      b.blocked_until = std::max(b.blocked_until, until);
    }
    if (!one_replica) blocked_until_ = std::max(blocked_until_, until);
  }
}

/// What the design costs until now, by the devices that it had; and how many there were.
void run::pay(double until) {
  device_s_ += design_.devices() * (until - paid_until_);
  prompt_server_s_ += design_.prefill_servers * (until - paid_until_);
  if (measuring_) replica_s_ += design_.groups() * (until - paid_until_);
  usd_ += design_.usd_per_hour() * (until - paid_until_);
  paid_until_ = until;
}

void run::scale() {
  while (!loading_.empty() && loading_.front() <= now_) {
    loading_.erase(loading_.begin());
    load_compute();
  }
  while (!loading_prompts_.empty() && loading_prompts_.front() <= now_) {
    loading_prompts_.erase(loading_prompts_.begin());
    scale_prompts(+1);
  }
  while (!scalings_.empty() && scalings_.front().at_s <= now_) {
    const auto event = scalings_.front();
    scalings_.erase(scalings_.begin());
    apply(event);
  }
}

void run::apply(const scaling_event& event) {
  const auto wrong = [&](const std::string& why) {
    throw std::invalid_argument{"scaling after " + std::to_string(std::llround(event.at_s))
                                + " s: " + why};
  };
  pay(now_);
  ++result_.scalings;
  if (event.memory_devices) {
    if (!design_.disaggregated()) wrong("the design has no memory devices");
    auto next = design_;
    const auto count = int64_t{design_.memory.count} + event.change;
    if (count < 1) wrong("no memory device would be left");
    next.memory.count = static_cast<uint32_t>(count);
    if (const auto why = refuse(next, cost_)) wrong(*why);
    // All shares change; the smaller of both pools sends or receives what moves.
    const auto few = std::min(next.memory.count, design_.memory.count),
               many = std::max(next.memory.count, design_.memory.count);
    double used = 0;
    for (const auto& p : kv_.pools) used += p.used();
    const auto path =
        cost_.path(design_.network, {design_.memory.kind, few}, {design_.memory.kind, many});
    const auto moves = used * cost_.model().kv_bytes_per_token() * (many - few) / many;
    design_ = next;
    settle_slots();
    moved_at_ = now_ + moves / path.bandwidth;
    blocked_until_ = std::max(blocked_until_, moved_at_);
    return;
  }
  const auto replicas = int64_t{design_.replicas} + event.change;
  if (replicas < 1) wrong("no compute devices would be left");
  if (event.change > 0)
    return load_weights(loading_, design_.compute, design_.stages, event.change);
  for (int32_t i = 0; i > event.change; --i) drop_replica();
}

/// New devices are paid for from now on, and of use when the weights are there.
void run::load_weights(std::vector<double>& loading, const device_group& devices, uint32_t stages,
                       int32_t count) {
  const auto load =
      cost_.model().weight_bytes / (devices.count * stages * cost_.values().host_link_gbs * 1e9);
  for (int32_t i = 0; i < count; ++i) loading.push_back(now_ + load);
  std::sort(loading.begin(), loading.end());
  usd_ += load * count * stages * devices.usd_per_hour();
  device_s_ += load * count * stages * devices.count;
}

/// When devices fail, come or go next, or the autoscaler looks; far away when nothing of it will
/// be.
double run::next_change() const {
  double next = 1e300;
  if (!scalings_.empty()) next = scalings_.front().at_s;
  if (!failures_.empty()) next = std::min(next, failures_.front().at_s);
  if (!loading_.empty()) next = std::min(next, loading_.front());
  if (!loading_prompts_.empty()) next = std::min(next, loading_prompts_.front());
  return scaling_ ? std::min(next, scaling_->next_look) : next;
}

/// One more replica, or one more server with KV of its own.
void run::load_compute() {
  pay(now_);
  const bool all_stages = design_.batches > design_.groups(); // each had a batch of its own
  ++design_.replicas;
  if (design_.disaggregated()) {
    const bool rotates = design_.pipeline == pipeline_kind::rotational;
    const auto wanted = (all_stages ? design_.groups() : design_.replicas) + rotates;
    for (; design_.batches < wanted; ++design_.batches) add_batch();
    return;
  }
  resize_tables(kv_, ledger_of(static_cast<uint32_t>(slots_per_pool(design_, cost_))).tables);
  for (auto& b : batches_) {
    b.context.push_back(0);
    b.rows.push_back(0);
  }
  for (uint32_t i = 0; i < design_.stages; ++i) add_batch();
}

void run::add_batch() {
  auto& b = batches_.emplace_back(design_.chunk_tokens, design_.tbt_target_s);
  b.context.assign(kv_.pools.size(), 0);
  b.rows.assign(kv_.pools.size(), 0);
  seats_.push_back(0);
  times_.emplace_back();
}

/// The last replica goes, and with it the batches that are more than can run. What is in them runs
/// on in others, or again where the KV went with the server.
void run::drop_replica() {
  --design_.replicas;
  if (design_.disaggregated()) {
    if (design_.pipeline == pipeline_kind::rotational)
      for (; design_.batches > design_.groups() + 1; --design_.batches) drop_batch();
    return;
  }
  for (uint32_t i = 0; i < design_.stages; ++i) drop_batch();
  resize_tables(kv_, ledger_of(kv_.pools[0].slots()).tables);
  for (auto& b : batches_) {
    b.context.pop_back();
    b.rows.pop_back();
  }
}

void run::drop_batch() {
  const auto last = static_cast<uint32_t>(batches_.size() - 1);
  for (uint32_t index = 0; index < states_.size(); ++index) {
    auto& s = states_[index];
    if (s.at == place::outside || s.batch != last) continue;
    if (design_.disaggregated())
      move_over(index);
    else
      lose(index);
  }
  batches_.pop_back();
  seats_.pop_back();
  times_.pop_back();
}

/// Out of the last batch into another one; its KV stays where it is.
void run::move_over(uint32_t index) {
  auto& s = states_[index];
  if (s.at == place::seated) {
    auto& b = batches_[s.batch];
    s.generated = s.joined_generated + static_cast<uint32_t>(b.iteration - s.joined_at);
    stay_sum_ += now_ - s.stay_since;
    s.token_s = now_;
    ++s.stamp;
  }
  seats_[s.batch] = UINT64_MAX / 2; // out of reach
  s.batch = *least_loaded(seats_, UINT64_MAX, 0);
  ++seats_[s.batch];
  auto& to = batches_[s.batch];
  if (s.at == place::prompt && !prompts_)
    to.prompts.add(id_of(index), tokens_of(index));
  else if (s.at == place::seated || s.at == place::joining)
    to.joining.push_back(index);
  if (s.at == place::seated) s.at = place::joining;
}

/// It runs again later: its KV is gone with the server that had it.
void run::lose(uint32_t index) {
  auto& s = states_[index];
  if (s.at == place::seated) {
    leave(batches_[s.batch], index, false);
    s.token_s = now_;
    if (!design_.prompts()) result_.recomputed_tokens += tokens_of(index);
  } else {
    ++s.stamp;
    give_back(index);
  }
  queue_again(index);
}

/// Everybody's slots in the tables of a pool that has changed: those that came last and find no
/// room run again later.
void run::settle_slots() {
  const auto slots = static_cast<uint32_t>(slots_per_pool(design_, cost_));
  kept_ = static_cast<uint32_t>(slots * design_.kept_free_share);
  kv_ = ledger_of(slots);
  for (auto& b : batches_) {
    b.context.assign(kv_.pools.size(), 0);
    b.rows.assign(kv_.pools.size(), 0);
  }
  for (uint32_t index = 0; index < states_.size(); ++index) {
    auto& s = states_[index];
    if (s.at == place::outside) continue;
    auto& b = batches_[s.batch];
    const kv_need need{.holder = id_of(index), .slots = s.capacity};
    const auto table = table_for(kv_, need, 0);
    if (grant_in(kv_, table, need, 0, clock())) {
      s.pool = table;
      if (s.at != place::seated) continue;
      b.rows[s.pool] += 1;
      b.context[s.pool] += trace_[index].prompt_tokens + s.joined_generated
                           + static_cast<double>(b.iteration - s.joined_at);
      continue;
    }
    s.pool = 0;
    if (s.at == place::seated) {
      b.rows[0] += 1; // leave() takes it away again
      b.context[0] += trace_[index].prompt_tokens + s.joined_generated
                      + static_cast<double>(b.iteration - s.joined_at);
      preempt(b, index);
      continue;
    }
    ++s.stamp;
    if (s.at == place::prompt && !prompts_) { // nor does what runs of it count
      b.prompts.remove(id_of(index));
      std::erase_if(b.pieces, [&](const auto& x) { return x.sequence == id_of(index); });
    }
    std::erase(b.joining, index);
    give_back(index);
    queue_again(index);
  }
}

} // namespace lamella::scheduler::decoding
