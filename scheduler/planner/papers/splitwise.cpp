#include "scheduler/planner/papers/splitwise.hpp"

#include "scheduler/placement.hpp"
#include "scheduler/planner/papers/splitwise_state.hpp"

#include <algorithm>
#include <cmath>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>

namespace lamella::scheduler {

namespace {

using namespace phase_splitting;

class run {
public:
  run(const splitwise_design& d, const machine_kind& reference, const request_trace& trace,
      const splitwise_options& o)
      : reference_{reference}, trace_{trace}, o_{o}, states_(trace.size()) {
    split_ = d.prompt_machines > 0;
    for (uint32_t i = 0; i < d.prompt_machines; ++i) machines_.emplace_back(d.prompt, pool::prompt);
    for (uint32_t i = 0; i < d.token_machines; ++i)
      machines_.emplace_back(d.token, split_ ? pool::token : pool::mixed);
    if (o.report_s > 0) report();
    for (uint32_t i = 0; i < o.failures.size(); ++i) {
      if (o.failures[i].machine >= machines_.size())
        throw std::invalid_argument{"machine " + std::to_string(o.failures[i].machine)
                                    + " is to fail, and there are "
                                    + std::to_string(machines_.size())};
      events_.push({o.failures[i].at_s, order_++, event::failure, i});
    }
  }

  splitwise_result play() {
    uint32_t next = 0;
    while (next < trace_.size() || r_.requests < trace_.size()) {
      if (next < trace_.size()
          && (events_.empty() || trace_[next].arrival_s <= events_.top().time)) {
        advance(trace_[next].arrival_s);
        route(next++);
        continue;
      }
      if (events_.empty()) throw std::logic_error{"requests wait and nothing runs"};
      const auto e = events_.top();
      events_.pop();
      advance(e.time);
      switch (e.what) {
      case event::iteration:
        if (machines_[e.subject].stamp == e.stamp) end_iteration(e.subject);
        break;
      case event::arrived:
        if (states_[e.subject].stamp == e.stamp) begin_tokens(e.subject);
        break;
      case event::failure:
        fail(o_.failures[e.subject]);
        break;
      case event::repair:
        repair(e.subject);
        break;
      case event::report:
        report();
        break;
      }
    }
    r_.seconds = now_;
    if (now_ > 0) r_.mean_decoding /= now_;
    if (r_.transfers > 0) r_.transfer_s /= static_cast<double>(r_.transfers);
    return r_;
  }

private:
  void advance(double until) {
    r_.mean_decoding += decoding_ * (until - std::exchange(now_, until));
  }
  double kv_of(uint32_t q) const { return trace_[q].prompt_tokens + trace_[q].output_tokens; }

  /// The machine of a pool with the least `load`, if its load stays within `limit`; or nowhere.
  template <class Load> uint32_t pick(pool p, double limit, double wanted, Load load) const {
    // least_loaded() wants the loads side by side; machines of other pools are out of reach.
    std::vector<uint64_t> loads(machines_.size(), UINT64_MAX / 2);
    for (uint32_t i = 0; i < machines_.size(); ++i)
      if (machines_[i].label.now() == p && !machines_[i].down)
        loads[i] = static_cast<uint64_t>(load(machines_[i]));
    return least_loaded(loads, static_cast<uint64_t>(limit), static_cast<uint64_t>(wanted))
        .value_or(nowhere);
  }

  /// What the cluster's scheduler goes by (S-M06).
  const machine_load& seen(const machine& m) const { return o_.report_s > 0 ? m.known : m.load; }
  void send(uint32_t i, const machine_load& more) {
    for (auto* x : {&machines_[i].load, &machines_[i].known}) {
      x->pending += more.pending;
      x->promised += more.promised;
    }
  }
  void report() {
    for (auto& m : machines_) m.known = m.load;
    events_.push({now_ + o_.report_s, order_++, event::report, 0});
  }

  /// Both machines at once (S-M04): own pool, mixed pool, then one of the other pool joins the
  /// mixed one (S-M07).
  void route(uint32_t q) {
    const auto pending = [this](const machine& m) { return seen(m).pending; };
    const auto promised = [this](const machine& m) { return seen(m).promised; };
    const auto prompt = trace_[q].prompt_tokens;
    std::vector<prompt_queue> queues;
    for (const auto& m : machines_)
      queues.push_back(
          {m.label.now(), static_cast<uint64_t>(pending(m)), m.prompts.empty(), m.down});
    const auto way = route_prompt(queues, prompt, o_.pending_tokens);
    constexpr double any = 1e15;
    const auto room = [&](pool p) {
      double most = 0;
      for (const auto& m : machines_)
        if (m.label.now() == p && !m.down) most = std::max(most, m.kind->kv_tokens);
      return most;
    };
    const uint32_t from = way ? way->machine : nowhere;
    uint32_t to = nowhere;
    for (const auto p : {pool::token, pool::mixed})
      if (to == nowhere) to = pick(p, room(p), kv_of(q), promised);
    if (way && way->joins_mixed) join_mixed(from);
    if (to == nowhere && (to = pick(pool::prompt, any, 0, promised)) != nowhere) join_mixed(to);
    uint32_t shortest = nowhere;
    for (uint32_t i = 0; i < machines_.size(); ++i)
      if (!machines_[i].down
          && (shortest == nowhere || pending(machines_[i]) < pending(machines_[shortest])))
        shortest = i;
    if (shortest == nowhere) { // all are down: until one is repaired
      stranded_.push_back(q);
      return;
    }
    // Without splitting, or when all are full, one machine does both (S-M25).
    const bool both = split_ && from != nowhere && to != nowhere;
    auto& s = states_[q];
    s.prompt_machine = both ? from : shortest;
    s.token_machine = both ? to : shortest;
    s.left = trace_[q].output_tokens - 1;
    s.now = phase::prompt;
    send(s.prompt_machine, {double(prompt), 0});
    send(s.token_machine, {1, kv_of(q)});
    machines_[s.prompt_machine].prompts.push_back(q);
    start(s.prompt_machine);
  }

  void join_mixed(uint32_t i) {
    machines_[i].label.join_mixed(now_);
    ++r_.to_mixed;
  }

  /// Back to its own pool when nothing of the other kind is left (S-M08).
  void leave_mixed(machine& m) {
    if (m.prompts.empty() && m.decoding.empty() && m.waiting.empty()) m.label.leave_mixed();
  }

  void start(uint32_t i) {
    auto& m = machines_[i];
    if (m.running || m.down) return;
    r_.repurposed += m.label.repurpose(now_, o_.repurpose_s);
    const bool whole_batches = o_.batching == batching_mode::request;
    const bool closed = whole_batches && !m.decoding.empty() && m.begun == 0;
    while (!closed && !m.waiting.empty()
           && (m.used == 0 || m.used + kv_of(m.waiting.front()) <= m.kind->kv_tokens)) {
      m.used += kv_of(m.waiting.front());
      m.decoding.push_back(m.waiting.front());
      m.waiting.pop_front();
    }
    m.batch_prompts.clear();
    m.batch_tokens.clear();
    double tokens = 0;
    const auto take = [&](uint32_t q) {
      if (tokens + 1 > o_.batch_tokens || m.batch_tokens.size() >= o_.batch_requests) return false;
      m.batch_tokens.push_back(q);
      tokens += 1;
      return true;
    };
    // Those that stood back often enough go first, then prompts, then the other tokens (S-M12).
    for (const auto q : m.decoding)
      if (states_[q].preemptions >= o_.preemptions) take(q);
    double prompt_tokens = 0;
    const bool prompts_wait = (o_.batching == batching_mode::continuous && !m.batch_tokens.empty())
                              || (whole_batches && m.begun > 0);
    while (!prompts_wait && !m.prompts.empty()) {
      const auto q = m.prompts.front();
      if (!m.batch_prompts.empty() && tokens + trace_[q].prompt_tokens > o_.batch_tokens) break;
      tokens += trace_[q].prompt_tokens;
      prompt_tokens += trace_[q].prompt_tokens;
      m.batch_prompts.push_back(q);
      m.prompts.pop_front();
      if (states_[q].token_machine == i) ++m.begun;
    }
    const bool alone = o_.batching != batching_mode::mixed && !m.batch_prompts.empty();
    for (const auto q : m.decoding) {
      auto& s = states_[q];
      if (s.preemptions >= o_.preemptions || (!alone && take(q))) continue;
      ++s.preemptions;
      ++r_.preempted;
      r_.preempted_most = std::max<uint64_t>(r_.preempted_most, s.preemptions);
    }
    if (m.batch_prompts.empty() && m.batch_tokens.empty()) return leave_mixed(m);
    const double rows = static_cast<double>(m.batch_tokens.size());
    double time;
    if (m.batch_prompts.empty())
      time = m.kind->times.token_s(rows, o_.key);
    else
      time = m.kind->times.prompt_s(prompt_tokens + rows) * (rows > 0 ? o_.mixed_slowdown : 1);
    r_.joules += time * m.kind->watts_of(prompt_tokens, rows);
    m.running = true;
    events_.push({now_ + time, order_++, event::iteration, i, m.stamp});
  }

  void end_iteration(uint32_t i) {
    auto& m = machines_[i];
    m.running = false;
    for (const auto q : m.batch_prompts) end_prompt(q, m);
    bool ended = false;
    for (const auto q : m.batch_tokens) {
      ++r_.tokens;
      if (--states_[q].left == 0) {
        end_request(q);
        m.used -= kv_of(q);
        ended = true;
      }
    }
    if (ended) std::erase_if(m.decoding, [&](uint32_t q) { return states_[q].left == 0; });
    start(i);
  }

  void end_prompt(uint32_t q, machine& m) {
    auto& s = states_[q];
    m.load.pending -= trace_[q].prompt_tokens;
    ++r_.tokens;
    if (!std::exchange(s.answered, true)) { // else its user has had that token before
      s.first_token = now_;
      const auto waited = now_ - trace_[q].arrival_s;
      r_.ttft.add(waited);
      r_.ttft_slowdown.add(waited / reference_.times.prompt_s(trace_[q].prompt_tokens));
      if (s.left > 0) ++decoding_;
    }
    if (s.left == 0) return end_request(q);
    move_kv(q, s.prompt_machine);
  }

  /// To the token machine; the prompt machine, or what keeps its checkpoint, is of kind `from`.
  void move_kv(uint32_t q, uint32_t from) {
    auto& s = states_[q];
    s.now = phase::moving;
    double transfer = 0;
    if (from != s.token_machine) {
      const auto& one = *machines_[from].kind;
      const auto& other = *machines_[s.token_machine].kind;
      const auto bandwidth = std::min(one.nic_bandwidth, other.nic_bandwidth);
      const auto serialized = trace_[q].prompt_tokens * one.kv_bytes_per_token / bandwidth;
      transfer =
          o_.layer_wise && trace_[q].prompt_tokens >= o_.serialized_below
              ? std::min(serialized, std::max(one.visible_transfer_s, other.visible_transfer_s))
              : serialized;
      ++r_.transfers;
      r_.transfer_s += transfer;
    }
    events_.push({now_ + transfer, order_++, event::arrived, q, s.stamp});
  }

  void begin_tokens(uint32_t q) {
    const auto i = states_[q].token_machine;
    states_[q].now = phase::decoding;
    machines_[i].waiting.push_back(q);
    start(i);
  }

  void end_request(uint32_t q) {
    const auto& x = trace_[q];
    auto& m = machines_[states_[q].token_machine];
    m.load.pending -= 1;
    m.load.promised -= kv_of(q);
    if (states_[q].prompt_machine == states_[q].token_machine && m.begun > 0) --m.begun;
    states_[q].now = phase::done;
    ++r_.requests;
    const auto whole = now_ - x.arrival_s;
    const auto alone_token = reference_.times.token_s(1, o_.key);
    r_.e2e.add(whole);
    r_.e2e_slowdown.add(
        whole / (reference_.times.prompt_s(x.prompt_tokens) + alone_token * (x.output_tokens - 1)));
    if (x.output_tokens > 1) {
      const auto tbt = (now_ - states_[q].first_token) / (x.output_tokens - 1);
      r_.tbt.add(tbt);
      r_.tbt_slowdown.add(tbt / alone_token);
      --decoding_;
    }
  }

  /// What was on the machine runs again from its beginning elsewhere, or, with checkpoints, from
  /// the end of its prompt (S-M27). What was only to come here goes to another machine.
  void fail(const machine_failure& x) {
    auto& m = machines_[x.machine];
    if (m.down) return;
    m.die();
    ++r_.failures;
    events_.push({now_ + x.repair_s, order_++, event::repair, x.machine});
    std::vector<uint32_t> again;
    for (uint32_t q = 0; q < states_.size(); ++q) {
      auto& s = states_[q];
      const bool prompt_here = s.now == phase::prompt && s.prompt_machine == x.machine;
      const bool tokens_here =
          s.token_machine == x.machine
          && (s.now == phase::prompt || s.now == phase::moving || s.now == phase::decoding);
      if (prompt_here && !tokens_here) { // the other machine need not expect it any more
        machines_[s.token_machine].load.pending -= 1;
        machines_[s.token_machine].load.promised -= kv_of(q);
      }
      if (prompt_here || (tokens_here && s.now != phase::prompt))
        again.push_back(q);
      else if (tokens_here)
        expect_tokens(q, s.prompt_machine);
    }
    for (const auto q : again) restart(q, x.machine);
  }

  /// The token machine with the most room, or the prompt's own; it is told to expect the request.
  void expect_tokens(uint32_t q, uint32_t otherwise) {
    constexpr double any = 1e15;
    const auto promised = [this](const machine& m) { return seen(m).promised; };
    auto to = pick(pool::token, any, 0, promised);
    if (to == nowhere) to = pick(pool::mixed, any, 0, promised);
    states_[q].token_machine = to == nowhere ? otherwise : to;
    send(states_[q].token_machine, {1, kv_of(q)});
  }

  void restart(uint32_t q, uint32_t lost) {
    auto& s = states_[q];
    ++s.stamp;
    ++r_.restarted;
    const bool ended_prompt = s.now != phase::prompt;
    if (ended_prompt) {
      const auto had = trace_[q].output_tokens - s.left; // the prompt's own token is one of them
      r_.tokens -= had;
      r_.lost_tokens += had;
    }
    s.now = phase::waiting;
    if (!ended_prompt || !o_.checkpoint) return route(q);
    uint32_t up = nowhere; // where tokens go if neither pool of theirs has a machine
    for (uint32_t i = 0; i < machines_.size() && up == nowhere; ++i)
      if (!machines_[i].down) up = i;
    if (up == nowhere) return route(q); // all are down
    expect_tokens(q, up);
    s.left = trace_[q].output_tokens - 1;
    ++r_.tokens; // the checkpoint has the prompt's token
    --r_.lost_tokens;
    move_kv(q, lost); // from where the checkpoint lies: as far away as the machine that is lost
  }

  void repair(uint32_t i) {
    machines_[i].down = false;
    machines_[i].label.leave_mixed();
    for (const auto q : std::exchange(stranded_, {})) route(q);
  }

  const machine_kind& reference_;
  const request_trace& trace_;
  const splitwise_options& o_;
  std::vector<machine> machines_;
  std::vector<request_run> states_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  splitwise_result r_;
  std::vector<uint32_t> stranded_; ///< wait for any machine to come back
  bool split_ = false;
  double now_ = 0, decoding_ = 0; ///< requests between their first and their last token
  uint64_t order_ = 0;
};

} // namespace

splitwise_result simulate_splitwise(const splitwise_design& design, const machine_kind& reference,
                                    const request_trace& trace, const splitwise_options& options) {
  if (design.prompt_machines + design.token_machines == 0
      || (design.prompt_machines > 0 && design.token_machines == 0))
    throw std::invalid_argument{"a design needs token machines, or machines that do both"};
  return run{design, reference, trace, options}.play();
}

} // namespace lamella::scheduler
