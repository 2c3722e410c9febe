#include "scheduler/planner/papers/neo.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace lamella::scheduler {

namespace {

/// Takes the listed positions out of `from`, in order.
std::vector<neo_sequence> take(std::vector<neo_sequence>& from,
                               const std::vector<uint32_t>& which) {
  std::vector<neo_sequence> taken;
  for (const auto i : which) taken.push_back(from[i]);
  for (auto it = which.rbegin(); it != which.rend(); ++it) from.erase(from.begin() + *it);
  return taken;
}

/// The machine as that kind of offloading uses it.
neo_machine machine_of(neo_machine m, const cost_model& cost, offload_kind kind) {
  const auto& model = cost.model();
  if (m.gpu.count == 0 || model.kv_heads % m.gpu.count != 0)
    throw std::invalid_argument{
        "the model's " + std::to_string(model.kv_heads) + " KV heads cannot be spread evenly over "
        + std::to_string(m.gpu.count) + " GPUs and their parts of the host"};
  // Released code: the host keeps as many tokens free as the GPU has, and the GPU one layer more
  // than the model's, through which prompts for the host pass.
  m.host_kept_tokens = m.gpu_kv_tokens;
  if (kind == offload_kind::none)
    m.host_kv_tokens = 0;
  else if (kind == offload_kind::neo)
    m.gpu_kv_tokens *= model.layers / (model.layers + 1.0);
  else
    m.gpu_kv_tokens = 0;
  return m;
}

/// One run of a trace: sequences, clock and what was counted.
class neo_run {
public:
  neo_run(const neo_machine& machine, const cost_model& cost, offload_kind kind,
          const request_trace& trace)
      : machine_{machine_of(machine, cost, kind)}, cost_{cost}, kind_{kind}, trace_{trace},
        profile_{profile_neo(machine_, cost)}, first_(trace.size(), 0) {}

  neo_result play() {
    while (next_ < trace_.size() || !idle()) {
      if (idle()) now_ = std::max(now_, trace_[next_].arrival_s);
      take_arrivals();
      if (!idle()) iterate();
    }
    return summary();
  }

private:
  /// Time, tokens and ended requests at one border of the window that rates are taken from.
  struct border {
    double time = 0, tokens = 0;
    uint64_t ended = 0;
  };

  bool idle() const {
    return state_.waiting.empty() && state_.on_gpu.empty() && state_.on_host.empty();
  }
  void grow(neo_sequence& x) {
    ++x.context;
    --x.left;
    tokens_ += 1;
  }
  void take_arrivals();
  void iterate();
  void start_prefills(const neo_iteration& plan);
  void end_finished(std::vector<neo_sequence>& all);
  neo_result summary();

  const neo_machine machine_;
  const cost_model& cost_;
  const offload_kind kind_;
  const request_trace& trace_;
  const neo_profile profile_;
  neo_result result_;
  neo_state state_;
  double now_ = 0, host_tokens_ = 0, tokens_ = 0;
  border from_, to_;
  size_t next_ = 0;
  std::vector<double> first_; ///< when the first token of each request came
};

void neo_run::take_arrivals() {
  // The planner considers no more prompts than fit an iteration; a short list keeps it fast.
  for (; next_ < trace_.size() && trace_[next_].arrival_s <= now_ && state_.waiting.size() < 256;
       ++next_) {
    const auto& t = trace_[next_];
    if (machine_.paged(static_cast<double>(t.prompt_tokens) + t.output_tokens + 1)
        > std::max(machine_.gpu_kv_tokens, machine_.host_kv_tokens)) {
      ++result_.never_fit;
      continue;
    }
    state_.waiting.push_back({static_cast<uint32_t>(next_), t.prompt_tokens, t.output_tokens});
  }
}

void neo_run::iterate() {
  double swapped = 0;
  const auto plan = plan_iteration(state_, machine_, profile_, kind_, swapped);
  if (!(plan.sequences > 0)) throw std::logic_error{"an iteration without work"};
  for (const auto i : plan.host_prefills)
    swapped += state_.waiting[i].context; // layer by layer (N-M04)
  const auto before = now_;
  now_ += std::max(plan.seconds,
                   swapped * cost_.model().kv_bytes_per_token() / machine_.pcie_bandwidth);
  ++result_.iterations;
  result_.two_batch_iterations += plan.two_batches;
  result_.mean_running +=
      static_cast<double>(state_.on_gpu.size() + state_.on_host.size()) * (now_ - before);
  for (auto& x : state_.on_gpu) grow(x);
  for (const auto* batch : {&plan.batch_0, &plan.batch_1})
    for (const auto i : *batch) {
      grow(state_.on_host[i]);
      host_tokens_ += 1;
    }
  start_prefills(plan);
  end_finished(state_.on_gpu);
  end_finished(state_.on_host);
  // Many may end at once: the window is from the end of an iteration to the end of another.
  if (from_.ended < trace_.size() * 3 / 10) from_ = {now_, tokens_, result_.requests};
  if (to_.ended < trace_.size() * 7 / 10) to_ = {now_, tokens_, result_.requests};
}

void neo_run::start_prefills(const neo_iteration& plan) {
  // Prefills are a prefix of the queue: those of the GPU first, then those of the host.
  auto started = plan.gpu_prefills;
  started.insert(started.end(), plan.host_prefills.begin(), plan.host_prefills.end());
  auto begun = take(state_.waiting, started);
  for (size_t i = 0; i < begun.size(); ++i) {
    if (first_[begun[i].index] == 0) {
      first_[begun[i].index] = now_;
      result_.ttft.add(now_ - trace_[begun[i].index].arrival_s);
    }
    grow(begun[i]);
    (i < plan.gpu_prefills.size() ? state_.on_gpu : state_.on_host).push_back(begun[i]);
  }
}

void neo_run::end_finished(std::vector<neo_sequence>& all) {
  std::erase_if(all, [&](const neo_sequence& x) {
    if (x.left > 0) return false;
    const auto& t = trace_[x.index];
    result_.token_latency_s += (now_ - t.arrival_s) / t.output_tokens;
    result_.e2e.add(now_ - t.arrival_s);
    if (t.output_tokens > 1) result_.tbt.add((now_ - first_[x.index]) / (t.output_tokens - 1));
    ++result_.requests;
    return true;
  });
}

neo_result neo_run::summary() {
  auto& r = result_;
  if (r.requests == 0)
    throw std::invalid_argument{"no request of the trace fits into a cache of "
                                + std::to_string(static_cast<uint64_t>(
                                    std::max(machine_.gpu_kv_tokens, machine_.host_kv_tokens)))
                                + " tokens"};
  r.token_latency_s /= static_cast<double>(r.requests);
  if (from_.ended == to_.ended) from_ = {}, to_ = {now_, tokens_, r.requests};
  if (to_.time > from_.time) {
    r.requests_per_s = static_cast<double>(to_.ended - from_.ended) / (to_.time - from_.time);
    r.tokens_per_s = (to_.tokens - from_.tokens) / (to_.time - from_.time);
  }
  r.seconds = now_;
  r.mean_running /= std::max(now_, 1e-9);
  r.tokens = static_cast<uint64_t>(tokens_);
  r.host_share = tokens_ > 0 ? host_tokens_ / tokens_ : 0;
  return r;
}

} // namespace

neo_result simulate_neo(const neo_machine& machine, const cost_model& cost, offload_kind kind,
                        const request_trace& trace) {
  return neo_run{machine, cost, kind, trace}.play();
}

} // namespace lamella::scheduler
