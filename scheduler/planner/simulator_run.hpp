/// A simulated run of a decoding design, as simulate() has it: its parts are in simulator.cpp,
/// simulator_prompts.cpp, simulator_prefixes.cpp, simulator_changes.cpp and
/// simulator_autoscale.cpp.
#pragma once

#include "scheduler/admission.hpp"
#include "scheduler/batch/slot_growth.hpp"
#include "scheduler/composer.hpp"
#include "scheduler/kv/kv_ledger.hpp"
#include "scheduler/planner/kv_arrivals.hpp"
#include "scheduler/planner/prefill_pool.hpp"
#include "scheduler/planner/simulation.hpp"

#include <deque>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <tuple>
#include <vector>

namespace lamella::scheduler::decoding {

/// How far a request is.
enum class place : uint8_t { outside, prompt, moving, joining, seated };

/// A request in the run; its index in the trace is its identity.
struct sequence_state {
  uint32_t generated = 0, joined_generated = 0;
  uint32_t batch = 0, pool = 0, stamp = 0;
  uint64_t joined_at = 0; ///< iteration of its batch
  uint32_t capacity = 0;  ///< slots it holds
  uint32_t cached = 0;    ///< of its prompt: what it found
  double stay_since = 0;
  double token_s = 0; ///< when its last token before it joins came, its prompt's own for one
  place at = place::outside;
  bool answered = false; ///< its first token has been there
};

/// Something that happens to a seated request when its batch reaches an iteration.
struct due {
  uint64_t iteration;
  uint32_t index, stamp;
  bool operator>(const due& x) const {
    return std::tie(iteration, index) > std::tie(x.iteration, x.index);
  }
};

/// The KV of a prompt is on its way until `at_s`.
struct moving_prompt {
  double at_s;
  uint32_t index, stamp;
  bool operator>(const moving_prompt& x) const {
    return std::tie(at_s, index) > std::tie(x.at_s, x.index);
  }
};

struct batch_run {
  batch_run(uint32_t chunk_tokens, double tbt_target_s)
      : prompts{chunk_tokens}, mix{{std::chrono::nanoseconds{0},
                                    std::chrono::nanoseconds{
                                        static_cast<int64_t>(tbt_target_s * 1e9)}}} {}

  std::set<uint32_t> seated;
  std::vector<uint32_t> joining; ///< seated, in from the next iteration on
  std::vector<uint32_t> fresh;   ///< in the iteration under way for the first time
  std::priority_queue<due, std::vector<due>, std::greater<>> finish, grow;
  prefill_plan prompts;              ///< computed concurrently with decoding
  composer mix;                      ///< bounds them
  std::vector<prefill_piece> pieces; ///< of them, in the iteration under way
  std::vector<double> context;       ///< tokens by pool
  std::vector<double> rows;          ///< requests by pool
  uint64_t iteration = 0;
  double rows_now = 0, context_now = 0; ///< of the iteration under way
  double start = 0, end = 0;
  double blocked_until = 0; ///< a device that it needs is down
  bool running = false;
  iteration_times times;
};

/// What happens between two looks of the autoscaler.
struct scaling_span {
  double from = 0;
  distribution tbt, ttft;
  double model = 0, attention = 0; ///< seconds of work, all iterations together
  uint64_t iterations = 0;
  uint64_t tokens = 0;     ///< of the run, when the span began
  double prompts_busy = 0; ///< seconds of servers for prompts, when the span began
};

/// The autoscaler of a run.
struct scaling_state {
  autoscaling options;
  scaling_policy policy;
  uint32_t least_slots = 0;         ///< of a pool of the smallest allowed memory pool
  std::deque<scaling_span> spans{}; ///< of the next look's window; the last is under way
  double next_look = 0;
};

class run {
public:
  run(const decode_design& design, const cost_model& cost, const request_trace& trace,
      const simulation_options& options, bool whole);
  simulation_result play();

private:
  /// Slots that a request needs to start.
  uint32_t slots_to_start(uint32_t tokens) const {
    return round_up(limits::slots_to_start(tokens, design_.window_slots));
  }
  /// The one that asks has its slots at once, or never.
  slot_growth growth() const { return {round_up(design_.window_slots), 0}; }
  uint32_t round_up(uint32_t slots) const {
    return (slots + design_.block_slots - 1) / design_.block_slots * design_.block_slots;
  }
  static sequence_id id_of(size_t index) { return sequence_of(request_id{index + 1}, 0); }
  static uint32_t index_of_id(sequence_id id) {
    return static_cast<uint32_t>(static_cast<uint64_t>(request_of(id)) - 1);
  }
  double arrival_of(uint32_t index) const {
    return options_.load == load_kind::arrivals ? trace_[index].arrival_s : 0;
  }
  uint32_t tokens_of(uint32_t index) const {
    return trace_[index].prompt_tokens + states_[index].generated;
  }

  /// Of a homogeneous design, with a batch for each of its stages.
  uint32_t server_of(uint32_t batch) const { return batch / design_.stages; }

  void offer();
  void pump();
  void seat(uint32_t index, uint32_t batch, uint32_t pool);
  void start_iteration(uint32_t j);
  void join(batch_run& b, uint32_t index);
  void end_iteration(uint32_t j);
  void measure(const batch_run& b, double duration);
  void add_tbt(double seconds, double weight = 1);
  void add_ttft(uint32_t index);
  void leave(batch_run& b, uint32_t index, bool done);
  void grow(batch_run& b, uint32_t index);
  void preempt(batch_run& b, uint32_t index);
  void queue_again(uint32_t index);
  void stop();
  simulation_result finish();

  // simulator_prompts.cpp
  void begin_prompt(uint32_t index);
  double next_prompt() const;
  bool prompts_under_way() const;
  void end_prompts();
  double nic_share() const;
  void end_pieces(batch_run& b);
  void first_token(uint32_t index, double transfer_s);
  void give_back(uint32_t index);

  // simulator_prefixes.cpp
  void number_blocks();
  std::chrono::nanoseconds clock() const;
  const std::vector<model::token_id>& text_of(uint32_t index);
  bool refused_before(const admission_entry& entry);
  kv_ledger ledger_of(uint32_t slots) const;
  std::optional<uint32_t> take_slots(const admission_entry& entry, uint32_t batch);
  void keep_prompt(uint32_t index);

  // simulator_changes.cpp
  void fail();
  double lost_kv(const failure_event& event, uint32_t which);
  void scale();
  void apply(const scaling_event& event);
  void load_compute();
  void add_batch();
  void drop_replica();
  void drop_batch();
  void move_over(uint32_t index);
  void lose(uint32_t index);
  void settle_slots();
  void pay(double until);
  void load_weights(std::vector<double>& loading, const device_group& devices, uint32_t stages,
                    int32_t count);
  double next_change() const;

  // simulator_autoscale.cpp
  void begin_autoscaling();
  void look();
  void measure_window(scaling_look& x) const;
  void end_span();
  scaling_look seen() const;
  void look_at_queue(scaling_look& x) const;
  double waits_since(uint32_t index) const;
  void obey(const scaling_step& step);
  void scale_prompts(int32_t change);

  decode_design design_;
  const cost_model& cost_;
  const request_trace& trace_;
  const simulation_options& options_;
  const bool whole_;
  admission queue_;
  kv_ledger kv_;
  std::vector<uint32_t> blocks_; ///< ids of the trace's prefix blocks, sorted; with a prefix cache
  /// The text asked for last: the head of the queue is tried again and again.
  std::pair<uint32_t, std::vector<model::token_id>> text_{~0u, {}};
  uint32_t kv_wanted_ = 0; ///< slots that the head of the queue waits for, with those kept free
  std::pair<sequence_id, std::vector<uint32_t>> tried_; ///< last, and the room in each pool then
  std::vector<sequence_state> states_;
  std::vector<batch_run> batches_;
  std::vector<uint64_t> seats_;
  std::vector<iteration_times> times_;
  std::optional<prefill_pool> prompts_;
  std::optional<kv_arrivals> arrivals_; ///< of prompts_
  std::priority_queue<moving_prompt, std::vector<moving_prompt>, std::greater<>> moving_;
  std::vector<failure_event> failures_;
  std::vector<scaling_event> scalings_;
  std::vector<double> loading_;         ///< when new compute devices have their weights
  std::vector<double> loading_prompts_; ///< likewise of servers for prompts
  double moved_at_ = 0;                 ///< when shares of KV have moved to other memory devices
  std::optional<scaling_state> scaling_;
  simulation_result result_;
  uint32_t kept_ = 0;
  size_t arrived_ = 0;
  double now_ = 0, blocked_until_ = 0, measure_from_ = 0;
  double usd_ = 0, paid_until_ = 0, replica_s_ = 0; ///< replicas over the measured time
  double device_s_ = 0, prompt_server_s_ = 0;       ///< over the whole run
  uint64_t total_tokens_ = 0;
  bool measuring_ = false, stopped_ = false;
  double measured_tokens_ = 0, batch_sum_ = 0, model_sum_ = 0, attention_sum_ = 0, wire_sum_ = 0;
  double running_sum_ = 0, stay_sum_ = 0;
};

} // namespace lamella::scheduler::decoding
