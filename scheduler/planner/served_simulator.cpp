#include "scheduler/planner/served_simulator.hpp"

#include "scheduler/admission.hpp"
#include "scheduler/slot_pool.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace lamella::scheduler {

namespace {

/// As the live batch and prefill worker have them.
constexpr uint32_t grow_below = 8, prompts_per_iteration = 64, kept_free_part = 20;

struct sequence_state {
  uint32_t generated = 0, capacity = 0;
  std::vector<slot_run> runs;
  double first_s = 0, last_s = 0;
};

/// Work that goes on at some rate.
struct activity {
  bool running = false;
  double left = 0; ///< seconds, if it were alone
  double start = 0;
};

class run {
public:
  run(const served_profile& profile, const request_trace& trace, const served_options& options)
      : limits_{profile.limits}, cost_{profile}, trace_{trace}, options_{options},
        queue_{admission_limits{}}, pool_{limits_.slots}, plan_{limits_.chunk_tokens, 70,
                                                                prompt_order::fair},
        states_(trace.size()) {
    if (options.seats > 0) limits_.seats = options.seats;
    const std::vector<prefill_piece> chunk{{sequence_id{}, 0, limits_.chunk_tokens, false}};
    work_s_ = cost_.chunk_s(chunk) / static_cast<double>(prefill_work(chunk));
  }

  served_result play() {
    for (;;) {
      offer();
      pump();
      const bool both = decode_.running && prefill_.running;
      const auto decode_rate = both ? cost_.decode_rate(rows_, context_, position_) : 1;
      const auto prefill_rate = both ? cost_.prefill_rate(rows_, context_, position_) : 1;
      auto step = 1e300;
      if (decode_.running) step = decode_.left / decode_rate;
      if (prefill_.running) step = std::min(step, prefill_.left / prefill_rate);
      if (options_.load == load_kind::arrivals && arrived_ < trace_.size()
          && trace_[arrived_].arrival_s > now_)
        step = std::min(step, trace_[arrived_].arrival_s - now_);
      if (step == 1e300) break;
      advance(step, decode_rate, prefill_rate);
    }
    if (arrived_ < trace_.size() || queue_.waiting() > 0)
      throw std::logic_error{"requests wait and nothing runs"};
    return finish();
  }

private:
  double arrival_of(uint32_t index) const {
    return options_.load == load_kind::arrivals ? trace_[index].arrival_s : 0;
  }
  static sequence_id id_of(size_t index) { return sequence_of(request_id{index + 1}, 0); }
  static uint32_t index_of_id(sequence_id id) {
    return static_cast<uint32_t>(static_cast<uint64_t>(request_of(id)) - 1);
  }
  /// Tokens that have K and V: all but the newest.
  uint32_t position_of(uint32_t index) const {
    return trace_[index].prompt_tokens + states_[index].generated - 1;
  }

  void offer() {
    for (; arrived_ < trace_.size(); ++arrived_) {
      const auto& x = trace_[arrived_];
      if (options_.load == load_kind::arrivals && x.arrival_s > now_) return;
      const auto whole = uint64_t{x.prompt_tokens} + x.output_tokens;
      if (whole > limits_.context_tokens || whole + limits_.window_slots > limits_.slots) {
        ++result_.never_fit;
        continue;
      }
      const admission_entry entry{id_of(arrived_), 1, x.prompt_tokens,
                                  x.prompt_tokens + limits_.window_slots};
      // The client tries again when there is room.
      if (queue_.offer(entry) != admission_verdict::queued) return;
    }
  }

  /// Starts what can start: waiting requests their prompts, prompts a chunk, the batch an
  /// iteration.
  void pump() {
    while (auto entry = queue_.next(limits_.seats, limits_.slots)) {
      const auto kept = admitted_ > 0 ? limits_.slots / kept_free_part : 0;
      if (admitted_ >= limits_.seats || pool_.free() < entry->slots + kept) break;
      auto& s = states_[index_of_id(entry->first)];
      s.runs = *pool_.take(entry->slots);
      s.capacity = entry->slots;
      ++admitted_;
      plan_.add(entry->first, entry->prompt_tokens, 0, clock());
      queue_.started();
      offer();
    }
    if (!prefill_.running) {
      pieces_ = plan_.next(bounds());
      if (!pieces_.empty()) prefill_ = {true, cost_.chunk_s(pieces_), now_};
      position_ = mean_position(pieces_);
    }
    if (!decode_.running) start_iteration();
  }

  std::chrono::nanoseconds clock() const {
    return std::chrono::nanoseconds{static_cast<int64_t>(now_ * 1e9)};
  }

  /// As a prefill worker bounds its iterations.
  prefill_limits bounds() const {
    const std::chrono::duration<double> target{prefill_plan::iteration_target};
    return {prompts_per_iteration, clock(), static_cast<uint64_t>(target.count() / work_s_),
            work_s_ * 1e9};
  }

  void start_iteration() {
    if (!ahead_) {
      seated_.insert(joining_.begin(), joining_.end());
      joining_.clear();
    }
    ahead_ = false;
    for (auto it = seated_.begin(); it != seated_.end();) {
      const auto index = *it++; // growing may take any seat away, this one included
      if (!seated_.contains(index) || position_of(index) + grow_below < states_[index].capacity)
        continue;
      if (!grow(index)) it = seated_.upper_bound(index);
    }
    if (seated_.empty()) return;
    rows_ = static_cast<double>(seated_.size());
    context_ = 0;
    // The iteration behind this one is launched with it, unless somebody comes or goes in between:
    // who comes later waits for both.
    ahead_ = joining_.empty();
    for (const auto index : seated_) {
      context_ += position_of(index);
      if (states_[index].generated + 1 >= trace_[index].output_tokens) ahead_ = false;
    }
    decode_ = {true, cost_.iteration_s(rows_, context_), now_};
  }

  /// More slots for a sequence; those that came last give theirs up. False when somebody had to.
  bool grow(uint32_t index) {
    auto& s = states_[index];
    for (bool easy = true;; easy = false) {
      const auto end = s.runs.back().first + s.runs.back().length;
      if (auto more = pool_.take(limits_.window_slots, end)) {
        append(s.runs, *more);
        s.capacity += limits_.window_slots;
        return easy;
      }
      if (position_of(index) < s.capacity) return easy; // it has room for this iteration
      const auto youngest = *seated_.rbegin();
      preempt(youngest);
      if (youngest == index) return false;
    }
  }

  /// It runs again later, with the same tokens: its prompt is then all of them.
  void preempt(uint32_t index) {
    seated_.erase(index);
    give_back(index);
    ++result_.preemptions;
    const auto tokens = trace_[index].prompt_tokens + states_[index].generated;
    result_.recomputed_tokens += tokens;
    queue_.offer({id_of(index), 1, tokens, tokens + limits_.window_slots, true});
  }

  void give_back(uint32_t index) {
    pool_.give_back(states_[index].runs);
    states_[index].runs.clear();
    --admitted_;
  }

  void advance(double step, double decode_rate, double prefill_rate) {
    now_ += step;
    between_sum_ += static_cast<double>(between_) * step;
    const auto go_on = [step](activity& x, double rate, double& busy) {
      if (!x.running) return false;
      busy += step;
      x.left -= step * rate;
      return x.left <= 1e-12; // a rounding error is no work
    };
    const bool decoded = go_on(decode_, decode_rate, result_.decode_busy);
    const bool filled = go_on(prefill_, prefill_rate, result_.prefill_busy);
    if (decoded) end_iteration();
    if (filled) end_chunk();
  }

  void tell(const activity& x, uint32_t batch, double rows, double context) const {
    if (options_.on_iteration)
      options_.on_iteration({x.start, now_ - x.start, batch, static_cast<uint32_t>(rows), context});
  }

  void end_iteration() {
    decode_.running = false;
    ++result_.iterations;
    tell(decode_, 0, rows_, context_);
    const auto seconds = now_ - decode_.start;
    decode_sum_ += seconds;
    if (cost_.beyond(rows_, context_)) beyond_sum_ += seconds;
    for (auto it = seated_.begin(); it != seated_.end();) {
      const auto index = *it;
      if (!take_token(index)) {
        ++it;
        continue;
      }
      it = seated_.erase(it);
    }
  }

  void end_chunk() {
    prefill_.running = false;
    double rows = 0, context = 0;
    for (const auto& x : pieces_) {
      rows += x.tokens;
      context += x.position;
      const auto index = index_of_id(x.sequence);
      if (x.last && !take_token(index)) joining_.push_back(index);
    }
    tell(prefill_, 1, rows, context);
  }

  /// One token of a request; true when it was the last.
  bool take_token(uint32_t index) {
    auto& s = states_[index];
    ++result_.tokens;
    if (s.generated++ == 0) {
      result_.ttft.add(now_ - arrival_of(index));
      s.first_s = now_;
      ++between_;
    } else {
      result_.tbt.add(now_ - s.last_s);
    }
    s.last_s = now_;
    if (s.generated < trace_[index].output_tokens) return false;
    ++result_.requests;
    result_.e2e.add(now_ - arrival_of(index));
    stay_sum_ += now_ - s.first_s;
    --between_;
    give_back(index);
    return true;
  }

  served_result finish() {
    auto& r = result_;
    if (r.requests == 0) throw std::invalid_argument{"no request of the trace fits the service"};
    r.seconds = r.measured_seconds = now_;
    if (now_ > 0) {
      r.tokens_per_s = static_cast<double>(r.tokens) / now_;
      r.decode_busy /= now_;
      r.prefill_busy /= now_;
      r.mean_batch = r.running_over_time = between_sum_ / now_;
      r.rate_times_stay = stay_sum_ / now_;
    }
    r.extrapolated = decode_sum_ > 0 ? beyond_sum_ / decode_sum_ : 0;
    return std::move(result_);
  }

  served_limits limits_;
  const served_cost cost_;
  const request_trace& trace_;
  const served_options& options_;
  double work_s_ = 0; ///< of a unit of prefill_work
  admission queue_;
  slot_pool pool_;
  prefill_plan plan_;
  std::vector<sequence_state> states_;
  std::set<uint32_t> seated_;
  std::vector<uint32_t> joining_;
  std::vector<prefill_piece> pieces_; ///< of the prefill iteration under way
  activity decode_, prefill_;
  bool ahead_ = false;            ///< the next iteration has its rows already
  double rows_ = 0, context_ = 0; ///< of the decode iteration under way
  double position_ = 0;           ///< of the prefill iteration under way, on average
  served_result result_;
  size_t arrived_ = 0;
  uint32_t admitted_ = 0, between_ = 0; ///< between first and last token
  double now_ = 0, between_sum_ = 0, stay_sum_ = 0, decode_sum_ = 0, beyond_sum_ = 0;
};

} // namespace

served_result simulate_served(const served_profile& profile, const request_trace& trace,
                              const served_options& options) {
  return run{profile, trace, options}.play();
}

} // namespace lamella::scheduler
