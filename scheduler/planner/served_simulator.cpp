#include "scheduler/planner/served_simulator.hpp"

#include "scheduler/admission.hpp"
#include "scheduler/batch/decode_batch.hpp"
#include "scheduler/batch/iteration_line.hpp"
#include "scheduler/kv/kv_grants.hpp"
#include "scheduler/limits.hpp"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>

namespace lamella::scheduler {

namespace {

struct sequence_state {
  uint32_t generated = 0;
  double first_s = 0, last_s = 0;
};

/// An iteration that is launched: what it costs depends on its rows and their contexts.
struct launched_rows {
  std::vector<uint32_t> seats;
  double rows = 0, context = 0;
  std::vector<prefill_piece> pieces{}; ///< of prompts that share the launch
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
        queue_{admission_limits{}}, kv_{{}, {{{{}, limits_.slots}}}}, plan_{limits_.chunk_tokens,
                                                                            70, prompt_order::fair},
        states_(trace.size()), composer_{options.bounds},
        batch_{{.growth = {.window = limits_.window_slots}, .stand_backs = options.stand_backs}} {
    if (options.seats > 0) limits_.seats = options.seats;
    const std::vector<prefill_piece> chunk{{sequence_id{}, 0, limits_.chunk_tokens, false}};
    work_s_ = cost_.chunk_s(chunk) / static_cast<double>(prefill_work(chunk));
  }

  served_result play() {
    for (;;) {
      offer();
      pump();
      const bool both = decode_.running && prefill_.running;
      const auto now = flights_.empty() ? launched_rows{} : flights_.front();
      const auto decode_rate = both ? cost_.decode_rate(now.rows, now.context, position_) : 1;
      const auto prefill_rate = both ? cost_.prefill_rate(now.rows, now.context, position_) : 1;
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
                                  limits::slots_to_start(x.prompt_tokens, limits_.window_slots)};
      // The client tries again when there is room.
      if (queue_.offer(entry) != admission_verdict::queued) return;
    }
  }

  /// Starts what can start: waiting requests their prompts, prompts a chunk, the batch an
  /// iteration.
  void pump() {
    while (auto entry = queue_.next(limits_.seats, limits_.slots)) {
      const auto kept = admitted_ > 0 ? limits::kept_free_of(limits_.slots) : 0;
      if (admitted_ >= limits_.seats) break;
      const kv_need need{.holder = entry->first, .slots = entry->slots};
      if (!grant_in(kv_, 0, need, kept, clock())) break;
      ++admitted_;
      plan_.add(entry->first, entry->prompt_tokens, 0, clock());
      queue_.started();
      offer();
    }
    if (!prefill_.running && !options_.mixed) {
      pieces_ = plan_.next(bounds());
      if (!pieces_.empty()) prefill_ = {true, cost_.chunk_s(pieces_), now_};
      position_ = mean_position(pieces_);
    }
    launch();
  }

  std::chrono::nanoseconds clock() const {
    return std::chrono::nanoseconds{static_cast<int64_t>(now_ * 1e9)};
  }

  /// As a prefill worker bounds its iterations.
  prefill_limits bounds() const {
    const std::chrono::duration<double> target{prefill_plan::iteration_target};
    return {limits::prompts_per_iteration, clock(), static_cast<uint64_t>(target.count() / work_s_),
            work_s_ * 1e9};
  }

  /// As a batch with mixed launches bounds its prompts.
  prefill_limits mixed_bounds(bool tokens) const {
    prefill_limits x{limits::prompts_per_iteration, clock()};
    if (const auto unit = composer_.unit_ns(); unit > 0) x.work_ns = unit;
    x.work = composer_.work_most(tokens);
    return x;
  }

  /// Whether an iteration may follow the one that runs before that has answered.
  bool may_run_ahead() const {
    return flights_.size() < iteration_line::most && flights_.front().pieces.empty()
           && batch_.rows_are_known() && (!options_.mixed || plan_.empty());
  }

  /// Launches what the live batch would: an iteration, and one behind it where its rows are known.
  void launch() {
    for (bool more = true; more;) {
      more = false;
      free_departed();
      if (flights_.empty())
        batch_.seat_joined();
      else if (!may_run_ahead())
        return;
      auto next = batch_.next(options_.mixed && composer_.prompts_first(plan_.waiting_work()));
      for (const auto seat : next.growing) more |= grow(seat);
      std::vector<prefill_piece> pieces;
      if (options_.mixed && flights_.empty()) pieces = plan_.next(mixed_bounds(!next.rows.empty()));
      batch_.stood_back(next.standing);
      if (next.rows.empty() && pieces.empty()) continue; // not before others have given slots up
      auto& flight = flights_.emplace_back(
          launched_rows{next.rows, static_cast<double>(next.rows.size()), 0, std::move(pieces)});
      for (const auto seat : next.rows) {
        flight.context += batch_.at(seat).next();
        batch_.launched(seat);
      }
      batch_.table().take_changes();
      if (flights_.size() == 1) begin_iteration();
      more = true;
    }
  }

  void begin_iteration() {
    const auto& x = flights_.front();
    decode_ = {true, cost_.mixed_s(x.rows, x.context, x.pieces), now_};
  }

  /// Answers a sequence that wants slots. False when nothing has changed for anybody.
  bool grow(uint32_t seat) {
    const auto sequence = batch_.at(seat).of.sequence;
    const kv_need need{.holder = sequence, .slots = limits_.window_slots};
    if (const auto more = grant_in(kv_, 0, need, 0, clock())) {
      batch_.granted(sequence, more->runs);
      return true;
    }
    const auto preempted = batch_.refused(sequence);
    if (preempted) ++result_.preemptions;
    return preempted.has_value();
  }

  /// Those that were preempted run again later, with the same tokens: their prompt is all of them.
  void free_departed() {
    for (const auto& x : batch_.depart()) {
      const auto index = index_of_id(x.sequence);
      give_back(index);
      if (!x.evicted) continue;
      const auto tokens = trace_[index].prompt_tokens + states_[index].generated;
      result_.recomputed_tokens += tokens;
      queue_.offer(
          {x.sequence, 1, tokens, limits::slots_to_start(tokens, limits_.window_slots), true});
    }
  }

  void give_back(uint32_t index) {
    release(kv_, id_of(index));
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
    const bool prompts_alone = decode_.running && flights_.front().rows == 0;
    const bool decoded =
        go_on(decode_, decode_rate, prompts_alone ? result_.prefill_busy : result_.decode_busy);
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
    const auto ended = std::move(flights_.front());
    flights_.pop_front();
    const auto seconds = now_ - decode_.start;
    if (ended.rows > 0) {
      ++result_.iterations;
      tell(decode_, 0, ended.rows, ended.context);
      decode_sum_ += seconds;
      if (cost_.beyond(ended.rows, ended.context)) beyond_sum_ += seconds;
    }
    composer_.ran(ended.rows > 0, prefill_work(ended.pieces),
                  std::chrono::nanoseconds{static_cast<int64_t>(seconds * 1e9)});
    for (const auto seat : ended.seats)
      if (batch_.commit(seat, 0).counts) take_token(index_of_id(batch_.at(seat).of.sequence));
    end_pieces(decode_, ended.pieces);
    free_departed();
    if (!flights_.empty()) begin_iteration();
  }

  void end_chunk() {
    prefill_.running = false;
    end_pieces(prefill_, pieces_);
  }

  void end_pieces(const activity& of, const std::vector<prefill_piece>& pieces) {
    if (pieces.empty()) return;
    double rows = 0, context = 0;
    for (const auto& x : pieces) {
      rows += x.tokens;
      context += x.position;
      const auto index = index_of_id(x.sequence);
      if (!x.last) continue;
      if (take_token(index))
        give_back(index);
      else
        join(index);
    }
    tell(of, 1, rows, context);
  }

  void join(uint32_t index) {
    batch_.join({.sequence = id_of(index),
                 .runs = kv_.holders.at(id_of(index)).runs,
                 .position = position_of(index),
                 .generated = states_[index].generated,
                 .max_tokens = trace_[index].output_tokens},
                clock());
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
  kv_ledger kv_;
  prefill_plan plan_;
  std::vector<sequence_state> states_;
  composer composer_; ///< bounds the prompts of mixed launches
  decode_batch batch_;
  std::deque<launched_rows> flights_; ///< oldest first
  std::vector<prefill_piece> pieces_; ///< of the prefill iteration under way
  activity decode_, prefill_;
  double position_ = 0; ///< of the prefill iteration under way, on average
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
