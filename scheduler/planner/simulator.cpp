#include "scheduler/planner/simulator.hpp"

#include "scheduler/kv/kv_grants.hpp"
#include "scheduler/placement.hpp"
#include "scheduler/planner/simulator_run.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace lamella::scheduler {

namespace decoding {

namespace {

constexpr double never = 1e300;

} // namespace

run::run(const decode_design& design, const cost_model& cost, const request_trace& trace,
         const simulation_options& options, bool whole)
    : design_{design}, cost_{cost}, trace_{trace}, options_{options}, whole_{whole},
      queue_{admission_limits{}},
      states_(trace.size()), failures_{options.failures}, scalings_{options.scalings} {
  const auto slots = static_cast<uint32_t>(slots_per_pool(design, cost));
  kept_ = static_cast<uint32_t>(slots * design.kept_free_share);
  kv_ = ledger_of(slots);
  number_blocks();
  for (uint32_t j = 0; j < design.concurrent(); ++j) add_batch();
  if (design.prefill_servers > 0) {
    prompts_.emplace(cost, design.prefill, design.prefill_servers);
    arrivals_.emplace(design, cost);
  }
  for (const auto& x : trace) total_tokens_ += x.output_tokens;
  const auto earlier = [](const auto& a, const auto& b) { return a.at_s < b.at_s; };
  std::sort(failures_.begin(), failures_.end(), earlier);
  std::stable_sort(scalings_.begin(), scalings_.end(), earlier);
  measuring_ = whole;
  if (options.autoscale) begin_autoscaling();
}

simulation_result run::play() {
  offer();
  pump();
  for (;;) {
    auto next = std::min_element(batches_.begin(), batches_.end(), [](auto& a, auto& b) {
      return a.running != b.running ? a.running : a.running && a.end < b.end;
    });
    const bool idle = !next->running && !prompts_under_way();
    if (idle && arrived_ == trace_.size() && queue_.waiting() == 0) break;
    if (idle && queue_.waiting() > 0 && arrived_ == trace_.size() && scalings_.empty()
        && loading_.empty() && loading_prompts_.empty()) {
      if (result_.scalings > 0)
        throw std::invalid_argument{
            "after scaling, a request that has begun does not fit any more"};
      throw std::logic_error("requests wait and nothing runs");
    }
    // A request that has come and found the queue full tries again when an iteration ends.
    const bool comes = arrived_ < trace_.size() && options_.load == load_kind::arrivals
                       && (idle || trace_[arrived_].arrival_s > now_);
    const auto arrival = comes ? trace_[arrived_].arrival_s : never;
    const auto end = next->running ? next->end : never, prompt = next_prompt();
    const auto change = next_change();
    const auto first = std::min({end, prompt, change, arrival});
    now_ = std::max(now_, first);
    if (first == change) {
      scale();
      fail();
      look();
    } else if (first == end)
      end_iteration(static_cast<uint32_t>(next - batches_.begin()));
    else if (first == prompt)
      end_prompts();
    if (now_ > options_.requests_limit_s) throw std::invalid_argument{"the run takes too long"};
    offer();
    pump();
  }
  return finish();
}

/// Requests that have come go into the queue, as long as it takes them.
void run::offer() {
  for (; arrived_ < trace_.size(); ++arrived_) {
    const auto& x = trace_[arrived_];
    if (options_.load == load_kind::arrivals && x.arrival_s > now_) return;
    const auto whole = uint64_t{x.prompt_tokens} + x.output_tokens + design_.window_slots;
    if (whole + design_.block_slots > (scaling_ ? scaling_->least_slots : kv_.pools[0].slots())) {
      ++result_.never_fit;
      continue;
    }
    const admission_entry entry{id_of(arrived_), 1, x.prompt_tokens,
                                slots_to_start(x.prompt_tokens), false};
    // The client tries again when there is room.
    if (queue_.offer(entry) != admission_verdict::queued) return;
  }
}

/// Starts as much of the queue as there is room for, in order.
void run::pump() {
  kv_wanted_ = 0;
  while (auto entry = queue_.next(options_.seats_per_batch, kv_.pools[0].slots())) {
    const auto batch = least_loaded(seats_, options_.seats_per_batch, 1);
    if (!batch) break;
    // Until it has them, and those that are kept free while others run.
    kv_wanted_ = entry->slots + (kv_.holders.empty() ? 0 : kept_);
    if (refused_before(*entry)) break;
    const auto pool = take_slots(*entry, *batch);
    if (!pool) break;
    kv_wanted_ = 0;
    queue_.started();
    offer();
    seat(index_of_id(entry->first), *batch, *pool);
  }
  if (prompts_) prompts_->start(now_);
  for (uint32_t j = 0; j < batches_.size(); ++j)
    if (!batches_[j].running) start_iteration(j);
  if (!whole_ && measuring_ && arrived_ == trace_.size() && queue_.waiting() == 0) stop();
}

void run::seat(uint32_t index, uint32_t batch, uint32_t pool) {
  auto& s = states_[index];
  s.batch = batch;
  s.pool = pool;
  s.capacity = length_of(kv_.holders.at(id_of(index)).runs);
  ++seats_[batch];
  if (design_.prompts()) return begin_prompt(index);
  keep_prompt(index);
  s.at = place::joining;
  batches_[batch].joining.push_back(index);
}

void run::start_iteration(uint32_t j) {
  auto& b = batches_[j];
  for (const auto index : b.joining) join(b, index);
  b.joining.clear();
  times_[j] = {};
  if (design_.prefill_beside)
    b.pieces = b.prompts.next(prefill_limits{.sequences = limits::prompts_per_iteration,
                                             .work = b.mix.work_most(!b.seated.empty())});
  if (b.seated.empty() && b.pieces.empty()) return;
  b.rows_now = b.context_now = 0;
  double busiest = 0;
  for (uint32_t i = 0; i < kv_.pools.size(); ++i) {
    b.rows_now += b.rows[i];
    b.context_now += b.context[i];
    busiest = std::max(busiest, b.context[i]);
  }
  times_[j] =
      times_with_prompts(design_, cost_, b.rows_now, b.context_now,
                         design_.disaggregated() && kv_.pools.size() > 1 ? busiest : 0, b.pieces);
  double duration = 0;
  if (design_.disaggregated()) {
    duration = iteration_s(times_, j, design_.replicas, design_.pipeline);
  } else {
    const auto first = server_of(j) * design_.stages;
    duration = iteration_s(std::span{times_}.subspan(first, design_.stages), j - first, 1,
                           pipeline_kind::fixed);
  }
  b.start = now_;
  b.end = std::max({now_, blocked_until_, b.blocked_until}) + duration;
  b.times = times_[j];
  b.running = true;
}

void run::join(batch_run& b, uint32_t index) {
  auto& s = states_[index];
  s.at = place::seated;
  s.joined_at = b.iteration;
  s.joined_generated = s.generated;
  s.stay_since = now_;
  ++s.stamp;
  b.fresh.push_back(index);
  b.seated.insert(index);
  b.rows[s.pool] += 1;
  b.context[s.pool] += tokens_of(index);
  b.finish.push({b.iteration + trace_[index].output_tokens - s.generated, index, s.stamp});
  b.grow.push({b.iteration + growth().tokens_left(tokens_of(index), s.capacity), index, s.stamp});
}

void run::end_iteration(uint32_t j) {
  auto& b = batches_[j];
  const auto duration = b.end - b.start;
  b.running = false;
  b.mix.ran(!b.seated.empty(), prefill_work(b.pieces),
            std::chrono::nanoseconds{static_cast<int64_t>(duration * 1e9)});
  ++b.iteration;
  ++result_.iterations;
  result_.tokens += b.seated.size();
  for (uint32_t i = 0; i < kv_.pools.size(); ++i) b.context[i] += b.rows[i];
  if (options_.on_iteration)
    options_.on_iteration({b.start, duration, j, static_cast<uint32_t>(b.rows_now), b.context_now});
  running_sum_ += b.rows_now * duration;
  measure(b, duration);
  for (const auto index : b.fresh)
    if (!std::exchange(states_[index].answered, true)) add_ttft(index);
  b.fresh.clear();
  end_pieces(b);
  while (!b.finish.empty() && b.finish.top().iteration <= b.iteration) {
    const auto x = b.finish.top();
    b.finish.pop();
    if (states_[x.index].stamp == x.stamp) leave(b, x.index, true);
  }
  while (!b.grow.empty() && b.grow.top().iteration <= b.iteration) {
    const auto x = b.grow.top();
    b.grow.pop();
    if (states_[x.index].stamp == x.stamp) grow(b, x.index);
  }
}

/// What an iteration adds to the numbers of the measured part.
void run::measure(const batch_run& b, double duration) {
  // The gap is longer for those who had a token before they came into the batch: their KV was on
  // its way, or they had given their slots up and waited for others.
  double late = 0;
  for (const auto index : b.fresh)
    if (states_[index].answered) {
      add_tbt(now_ - states_[index].token_s);
      ++late;
    }
  add_tbt(duration, b.rows_now - late);
  if (scaling_) {
    auto& span = scaling_->spans.back();
    span.model += b.times.model;
    span.attention += b.times.attention;
    ++span.iterations;
  }
  if (measuring_) {
    measured_tokens_ += b.rows_now;
    batch_sum_ += b.rows_now * duration;
    model_sum_ += b.times.model;
    attention_sum_ += b.times.attention;
    if (design_.disaggregated()) wire_sum_ += b.rows_now * cost_.model().wire_bytes_per_row();
  } else if (!whole_ && !stopped_
             && static_cast<double>(result_.tokens) >= 0.1 * static_cast<double>(total_tokens_)) {
    pay(now_);
    measuring_ = true;
    measure_from_ = now_;
  }
}

/// Between two tokens of a request, or of so many.
void run::add_tbt(double seconds, double weight) {
  if (measuring_) result_.tbt.add(seconds, weight);
  if (scaling_) scaling_->spans.back().tbt.add(seconds, weight);
}

/// A request has its first token.
void run::add_ttft(uint32_t index) {
  result_.ttft.add(now_ - arrival_of(index));
  if (scaling_) scaling_->spans.back().ttft.add(now_ - arrival_of(index));
}

void run::leave(batch_run& b, uint32_t index, bool done) {
  auto& s = states_[index];
  s.generated = s.joined_generated + static_cast<uint32_t>(b.iteration - s.joined_at);
  ++s.stamp;
  b.seated.erase(index);
  b.rows[s.pool] -= 1;
  b.context[s.pool] -= tokens_of(index);
  give_back(index);
  stay_sum_ += now_ - s.stay_since;
  if (!done) return;
  ++result_.requests;
  result_.e2e.add(now_ - arrival_of(index));
}

void run::grow(batch_run& b, uint32_t index) {
  auto& s = states_[index];
  const auto want = growth().window;
  for (;;) {
    if (grant_in(kv_, s.pool, {.holder = id_of(index), .slots = want}, 0, clock())) {
      s.capacity += want;
      b.grow.push({b.iteration + want, index, s.stamp});
      return;
    }
    // The sequence of this batch that came last gives its slots up and runs again later.
    const auto youngest =
        *last_to_come(b.seated, [&](uint32_t x) { return states_[x].pool == s.pool; });
    preempt(b, youngest);
    if (youngest == index) return;
  }
}

void run::preempt(batch_run& b, uint32_t index) {
  leave(b, index, false);
  states_[index].token_s = now_;
  ++result_.preemptions;
  queue_again(index);
}

void run::queue_again(uint32_t index) {
  const auto tokens = tokens_of(index);
  queue_.offer({id_of(index), 1, tokens, slots_to_start(tokens), true});
}

void run::stop() {
  pay(now_);
  measuring_ = false;
  stopped_ = true;
  result_.measured_seconds = now_ - measure_from_;
}

simulation_result run::finish() {
  auto& r = result_;
  if (r.requests == 0) throw std::invalid_argument{"no request of the trace fits into a pool"};
  r.seconds = now_;
  pay(now_);
  r.mean_usd_per_hour = now_ > 0 ? usd_ / now_ : design_.usd_per_hour();
  r.device_hours = device_s_ / 3600;
  r.most_device_hours *= now_;
  if (prompts_ && prompt_server_s_ > 0) r.prefill_busy = prompts_->busy_s(now_) / prompt_server_s_;
  if (whole_) r.measured_seconds = now_;
  if (r.measured_seconds > 0) {
    const auto t = r.measured_seconds;
    r.tokens_per_s = measured_tokens_ / t;
    r.mean_batch = batch_sum_ / t;
    r.model_busy = replica_s_ > 0 ? model_sum_ / replica_s_ : 0;
    r.attention_busy = attention_sum_ / t;
    r.wire_bytes_per_s = wire_sum_ / t;
  }
  r.running_over_time = running_sum_ / now_;
  r.rate_times_stay = stay_sum_ / now_;
  return std::move(result_);
}

} // namespace decoding

simulation_result simulate(const decode_design& design, const cost_model& cost,
                           const request_trace& trace, const simulation_options& options) {
  if (auto why = refuse(design, cost)) throw std::invalid_argument{*why};
  const bool whole = options.load == load_kind::arrivals;
  if (options.autoscale && !whole)
    throw std::invalid_argument{"autoscaling: a saturated load wants the most of everything"};
  if (design.prefix_cache_s > 0
      && !(options.failures.empty() && options.scalings.empty() && !options.autoscale))
    throw std::invalid_argument{"what devices that die, come or go do to a prefix cache is not "
                                "simulated: leave one of them out"};
  decoding::run first{design, cost, trace, options, whole};
  auto result = first.play();
  if (result.measured_seconds > 0 && (whole || result.measured_seconds >= 0.2 * result.seconds))
    return result;
  return decoding::run{design, cost, trace, options, true}
      .play(); // too short to have a steady part
}

} // namespace lamella::scheduler
