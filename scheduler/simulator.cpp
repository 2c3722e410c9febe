#include "scheduler/simulator.hpp"

#include "scheduler/admission.hpp"
#include "scheduler/placement.hpp"
#include "scheduler/slot_pool.hpp"

#include <algorithm>
#include <queue>
#include <set>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace lamella::scheduler {

namespace {

/// A request in the run; its index in the trace is its identity.
struct sequence_state {
  uint32_t generated = 0, joined_generated = 0;
  uint32_t batch = 0, pool = 0, stamp = 0;
  uint64_t joined_at = 0; ///< iteration of its batch
  uint32_t capacity = 0;  ///< slots it holds
  std::vector<slot_run> runs;
  double stay_since = 0;
};

/// Something that happens to a seated request when its batch reaches an iteration.
struct due {
  uint64_t iteration;
  uint32_t index, stamp;
  bool operator>(const due& x) const {
    return std::tie(iteration, index) > std::tie(x.iteration, x.index);
  }
};

struct batch_run {
  std::set<uint32_t> seated;
  std::vector<uint32_t> joining; ///< seated, in from the next iteration on
  std::vector<uint32_t> fresh;   ///< in the iteration under way for the first time
  std::priority_queue<due, std::vector<due>, std::greater<>> finish, grow;
  std::vector<double> context; ///< tokens by pool
  std::vector<double> rows;    ///< requests by pool
  uint64_t iteration = 0;
  double rows_now = 0, context_now = 0; ///< of the iteration under way
  double start = 0, end = 0;
  bool running = false;
  iteration_times times;
};

class run {
public:
  run(const decode_design& design, const cost_model& cost, const request_trace& trace,
      const simulation_options& options, bool whole)
      : design_{design}, cost_{cost}, trace_{trace}, options_{options}, whole_{whole},
        queue_{admission_limits{}}, states_(trace.size()),
        batches_(design.disaggregated() ? design.batches : design.replicas),
        seats_(batches_.size(), 0), times_(batches_.size()), failures_{options.failures} {
    const auto slots = static_cast<uint32_t>(slots_per_pool(design, cost));
    kept_ = static_cast<uint32_t>(slots * design.kept_free_share);
    for (uint32_t i = 0; i < design.pools(); ++i) pools_.emplace_back(slots);
    for (auto& b : batches_) {
      b.context.assign(pools_.size(), 0);
      b.rows.assign(pools_.size(), 0);
    }
    for (const auto& x : trace) total_tokens_ += x.output_tokens;
    std::sort(failures_.begin(), failures_.end(),
              [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
    measuring_ = whole;
  }

  simulation_result play() {
    offer();
    pump();
    for (;;) {
      auto next = std::min_element(batches_.begin(), batches_.end(), [](auto& a, auto& b) {
        return a.running != b.running ? a.running : a.running && a.end < b.end;
      });
      const bool idle = !next->running;
      if (idle && arrived_ == trace_.size() && queue_.waiting() == 0) break;
      if (idle && queue_.waiting() > 0 && arrived_ == trace_.size())
        throw std::logic_error("requests wait and nothing runs");
      // A request that has come and found the queue full tries again when an iteration ends.
      const bool comes = arrived_ < trace_.size() && options_.load == load_kind::arrivals
                         && (idle || trace_[arrived_].arrival_s > now_);
      const auto arrival = comes ? trace_[arrived_].arrival_s : 1e300;
      if (!idle && next->end <= arrival) {
        now_ = next->end;
        end_iteration(static_cast<uint32_t>(next - batches_.begin()));
        fail();
      } else {
        now_ = std::max(now_, arrival);
      }
      if (now_ > options_.requests_limit_s) throw std::invalid_argument{"the run takes too long"};
      offer();
      pump();
    }
    return finish();
  }

private:
  uint32_t round_up(uint32_t slots) const {
    return (slots + design_.block_slots - 1) / design_.block_slots * design_.block_slots;
  }

  /// Requests that have come go into the queue, as long as it takes them.
  void offer() {
    for (; arrived_ < trace_.size(); ++arrived_) {
      const auto& x = trace_[arrived_];
      if (options_.load == load_kind::arrivals && x.arrival_s > now_) return;
      const auto whole = uint64_t{x.prompt_tokens} + x.output_tokens + design_.window_slots;
      if (whole + design_.block_slots > pools_[0].slots()) {
        ++result_.never_fit;
        continue;
      }
      const admission_entry entry{id_of(arrived_), 1, x.prompt_tokens,
                                  round_up(x.prompt_tokens + design_.window_slots), false};
      // The client tries again when there is room.
      if (queue_.offer(entry) != admission_verdict::queued) return;
    }
  }

  static sequence_id id_of(size_t index) { return sequence_of(request_id{index + 1}, 0); }
  static uint32_t index_of_id(sequence_id id) {
    return static_cast<uint32_t>(static_cast<uint64_t>(request_of(id)) - 1);
  }

  /// Starts as much of the queue as there is room for, in order.
  void pump() {
    while (auto entry = queue_.next(options_.seats_per_batch, pools_[0].slots())) {
      const auto batch = least_loaded(seats_, options_.seats_per_batch, 1);
      if (!batch) break;
      auto pool = design_.disaggregated() ? 0u : *batch;
      if (design_.disaggregated() && pools_.size() > 1) {
        std::vector<uint64_t> used;
        for (const auto& p : pools_) used.push_back(p.used());
        const auto member = least_loaded(used, pools_[0].slots(), entry->slots);
        if (!member) break;
        pool = *member;
      }
      auto& slots = pools_[pool];
      // What runs must be able to grow.
      if (slots.free() < entry->slots + (slots.used() > 0 ? kept_ : 0)) break;
      auto taken = slots.take(entry->slots);
      queue_.started();
      offer();
      seat(index_of_id(entry->first), *batch, pool, std::move(*taken));
    }
    for (uint32_t j = 0; j < batches_.size(); ++j)
      if (!batches_[j].running) start_iteration(j);
    if (!whole_ && measuring_ && arrived_ == trace_.size() && queue_.waiting() == 0) stop();
  }

  void seat(uint32_t index, uint32_t batch, uint32_t pool, std::vector<slot_run> runs) {
    auto& s = states_[index];
    s.batch = batch;
    s.pool = pool;
    s.capacity = length_of(runs);
    s.runs = std::move(runs);
    ++seats_[batch];
    batches_[batch].joining.push_back(index);
  }

  double arrival_of(uint32_t index) const {
    return options_.load == load_kind::arrivals ? trace_[index].arrival_s : 0;
  }

  uint32_t tokens_of(uint32_t index) const {
    return trace_[index].prompt_tokens + states_[index].generated;
  }

  void start_iteration(uint32_t j) {
    auto& b = batches_[j];
    for (const auto index : b.joining) {
      auto& s = states_[index];
      s.joined_at = b.iteration;
      s.joined_generated = s.generated;
      s.stay_since = now_;
      if (s.stamp++ == 0) b.fresh.push_back(index);
      b.seated.insert(index);
      b.rows[s.pool] += 1;
      b.context[s.pool] += tokens_of(index);
      b.finish.push({b.iteration + trace_[index].output_tokens - s.generated, index, s.stamp});
      b.grow.push({b.iteration + s.capacity - tokens_of(index), index, s.stamp});
    }
    b.joining.clear();
    times_[j] = {};
    if (b.seated.empty()) return;
    b.rows_now = b.context_now = 0;
    double busiest = 0;
    for (uint32_t i = 0; i < pools_.size(); ++i) {
      b.rows_now += b.rows[i];
      b.context_now += b.context[i];
      busiest = std::max(busiest, b.context[i]);
    }
    times_[j] = times_of(design_, cost_, b.rows_now, b.context_now,
                         design_.disaggregated() && pools_.size() > 1 ? busiest : 0);
    const auto duration = design_.disaggregated()
                              ? iteration_s(times_, j, design_.replicas, design_.pipeline)
                              : times_[j].alone();
    b.start = now_;
    b.end = std::max(now_, blocked_until_) + duration;
    b.times = times_[j];
    b.running = true;
  }

  void end_iteration(uint32_t j) {
    auto& b = batches_[j];
    const auto duration = b.end - b.start;
    b.running = false;
    ++b.iteration;
    ++result_.iterations;
    result_.tokens += b.seated.size();
    for (uint32_t i = 0; i < pools_.size(); ++i) b.context[i] += b.rows[i];
    if (options_.on_iteration)
      options_.on_iteration(
          {b.start, duration, j, static_cast<uint32_t>(b.rows_now), b.context_now});
    running_sum_ += b.rows_now * duration;
    if (measuring_) {
      measured_tokens_ += b.rows_now;
      result_.tbt.add(duration, b.rows_now);
      batch_sum_ += b.rows_now * duration;
      model_sum_ += b.times.model;
      attention_sum_ += b.times.attention;
      wire_sum_ += b.rows_now * cost_.model().wire_bytes_per_row();
    } else if (!whole_ && !stopped_
               && static_cast<double>(result_.tokens) >= 0.1 * static_cast<double>(total_tokens_)) {
      measuring_ = true;
      measure_from_ = now_;
    }
    for (const auto index : b.fresh) result_.ttft.add(now_ - arrival_of(index));
    b.fresh.clear();
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

  void leave(batch_run& b, uint32_t index, bool done) {
    auto& s = states_[index];
    s.generated = s.joined_generated + static_cast<uint32_t>(b.iteration - s.joined_at);
    ++s.stamp;
    b.seated.erase(index);
    b.rows[s.pool] -= 1;
    b.context[s.pool] -= tokens_of(index);
    --seats_[s.batch];
    pools_[s.pool].give_back(s.runs);
    s.runs.clear();
    stay_sum_ += now_ - s.stay_since;
    if (!done) return;
    ++result_.requests;
    result_.e2e.add(now_ - arrival_of(index));
  }

  void grow(batch_run& b, uint32_t index) {
    auto& s = states_[index];
    auto& pool = pools_[s.pool];
    const auto want = round_up(design_.window_slots);
    for (;;) {
      const auto end = s.runs.back().first + s.runs.back().length;
      if (auto more = pool.take(want, end)) {
        append(s.runs, *more);
        s.capacity += want;
        b.grow.push({b.iteration + want, index, s.stamp});
        return;
      }
      // The sequence of this batch that came last gives its slots up and runs again later.
      uint32_t youngest = index;
      for (auto it = b.seated.rbegin(); it != b.seated.rend(); ++it)
        if (states_[*it].pool == s.pool) {
          youngest = *it;
          break;
        }
      preempt(b, youngest);
      if (youngest == index) return;
    }
  }

  void preempt(batch_run& b, uint32_t index) {
    leave(b, index, false);
    ++result_.preemptions;
    const auto tokens = tokens_of(index);
    queue_.offer({id_of(index), 1, tokens, round_up(tokens + design_.window_slots), true});
  }

  /// Devices that have died since the last look.
  void fail() {
    while (!failures_.empty() && failures_.front().at_s <= now_) {
      const auto event = failures_.front();
      failures_.erase(failures_.begin());
      double again = 0;
      if (event.memory_device || !design_.disaggregated()) {
        for (const auto& b : batches_)
          for (const auto index : b.seated) {
            const auto& s = states_[index];
            const auto tokens = trace_[index].prompt_tokens + s.joined_generated
                                + static_cast<uint32_t>(b.iteration - s.joined_at);
            result_.recomputed_tokens += tokens;
            again += cost_.prefill_s(design_.compute, tokens);
          }
        again /= design_.replicas;
      }
      blocked_until_ = std::max(blocked_until_, now_ + event.repair_s + again);
    }
  }

  void stop() {
    measuring_ = false;
    stopped_ = true;
    result_.measured_seconds = now_ - measure_from_;
  }

  simulation_result finish() {
    auto& r = result_;
    if (r.requests == 0) throw std::invalid_argument{"no request of the trace fits into a pool"};
    r.seconds = now_;
    if (whole_) r.measured_seconds = now_;
    if (r.measured_seconds > 0) {
      const auto t = r.measured_seconds;
      r.tokens_per_s = measured_tokens_ / t;
      r.mean_batch = batch_sum_ / t;
      r.model_busy = model_sum_ / t / design_.replicas;
      r.attention_busy = attention_sum_ / t;
      r.wire_bytes_per_s = wire_sum_ / t;
    }
    r.running_over_time = running_sum_ / now_;
    r.rate_times_stay = stay_sum_ / now_;
    return std::move(result_);
  }

  const decode_design& design_;
  const cost_model& cost_;
  const request_trace& trace_;
  const simulation_options& options_;
  const bool whole_;
  admission queue_;
  std::vector<slot_pool> pools_;
  std::vector<sequence_state> states_;
  std::vector<batch_run> batches_;
  std::vector<uint64_t> seats_;
  std::vector<iteration_times> times_;
  std::vector<failure_event> failures_;
  simulation_result result_;
  uint32_t kept_ = 0;
  size_t arrived_ = 0;
  double now_ = 0, blocked_until_ = 0, measure_from_ = 0;
  uint64_t total_tokens_ = 0;
  bool measuring_ = false, stopped_ = false;
  double measured_tokens_ = 0, batch_sum_ = 0, model_sum_ = 0, attention_sum_ = 0, wire_sum_ = 0;
  double running_sum_ = 0, stay_sum_ = 0;
};

} // namespace

simulation_result simulate(const decode_design& design, const cost_model& cost,
                           const request_trace& trace, const simulation_options& options) {
  if (auto why = refuse(design, cost)) throw std::invalid_argument{*why};
  const bool whole = options.load == load_kind::arrivals;
  run first{design, cost, trace, options, whole};
  auto result = first.play();
  if (result.measured_seconds > 0 && (whole || result.measured_seconds >= 0.2 * result.seconds))
    return result;
  return run{design, cost, trace, options, true}.play(); // too short to have a steady part
}

} // namespace lamella::scheduler
