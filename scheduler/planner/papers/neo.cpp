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

} // namespace

neo_result simulate_neo(const neo_machine& machine, const cost_model& cost, offload_kind kind,
                        const request_trace& trace) {
  const auto m = machine_of(machine, cost, kind);
  const auto profile = profile_neo(m, cost);
  neo_result r;
  neo_state s;
  double now = 0, host_tokens = 0, tokens = 0;
  struct {
    double time = 0, tokens = 0;
    uint64_t ended = 0;
  } from, to;
  size_t next = 0;
  std::vector<double> first(trace.size(), 0); ///< when the first token came
  const auto low = trace.size() * 3 / 10, high = trace.size() * 7 / 10;
  const auto grow = [&](neo_sequence& x) {
    ++x.context;
    --x.left;
    tokens += 1;
  };
  const auto end_those = [&](std::vector<neo_sequence>& all) {
    std::erase_if(all, [&](const neo_sequence& x) {
      if (x.left > 0) return false;
      const auto& t = trace[x.index];
      r.token_latency_s += (now - t.arrival_s) / t.output_tokens;
      r.e2e.add(now - t.arrival_s);
      if (t.output_tokens > 1) r.tbt.add((now - first[x.index]) / (t.output_tokens - 1));
      ++r.requests;
      return true;
    });
  };
  while (next < trace.size() || !s.waiting.empty() || !s.on_gpu.empty() || !s.on_host.empty()) {
    if (s.waiting.empty() && s.on_gpu.empty() && s.on_host.empty())
      now = std::max(now, trace[next].arrival_s);
    // The planner looks at no more prompts than fit an iteration; a short list keeps it fast.
    for (; next < trace.size() && trace[next].arrival_s <= now && s.waiting.size() < 256; ++next) {
      const auto& t = trace[next];
      if (m.paged(static_cast<double>(t.prompt_tokens) + t.output_tokens + 1)
          > std::max(m.gpu_kv_tokens, m.host_kv_tokens)) {
        ++r.never_fit;
        continue;
      }
      s.waiting.push_back({static_cast<uint32_t>(next), t.prompt_tokens, t.output_tokens});
    }
    if (s.waiting.empty() && s.on_gpu.empty() && s.on_host.empty()) continue;
    double swapped = 0;
    const auto plan = plan_iteration(s, m, profile, kind, swapped);
    if (!(plan.sequences > 0)) throw std::logic_error{"an iteration without work"};
    for (const auto i : plan.host_prefills)
      swapped += s.waiting[i].context; // layer by layer (N-M04)
    const auto before = now;
    now += std::max(plan.seconds, swapped * cost.model().kv_bytes_per_token() / m.pcie_bandwidth);
    ++r.iterations;
    r.two_batch_iterations += plan.two_batches;
    r.mean_running += static_cast<double>(s.on_gpu.size() + s.on_host.size()) * (now - before);
    for (auto& x : s.on_gpu) grow(x);
    for (const auto* batch : {&plan.batch_0, &plan.batch_1})
      for (const auto i : *batch) {
        grow(s.on_host[i]);
        host_tokens += 1;
      }
    // Prefills are a prefix of the queue: those of the GPU first, then those of the host.
    auto started = plan.gpu_prefills;
    started.insert(started.end(), plan.host_prefills.begin(), plan.host_prefills.end());
    auto begun = take(s.waiting, started);
    for (size_t i = 0; i < begun.size(); ++i) {
      if (first[begun[i].index] == 0) {
        first[begun[i].index] = now;
        r.ttft.add(now - trace[begun[i].index].arrival_s);
      }
      grow(begun[i]);
      (i < plan.gpu_prefills.size() ? s.on_gpu : s.on_host).push_back(begun[i]);
    }
    end_those(s.on_gpu);
    end_those(s.on_host);
    // Many may end at once: the window is from the end of an iteration to the end of another.
    if (from.ended < low) from = {now, tokens, r.requests};
    if (to.ended < high) to = {now, tokens, r.requests};
  }
  if (r.requests == 0)
    throw std::invalid_argument{
        "no request of the trace fits into a cache of "
        + std::to_string(static_cast<uint64_t>(std::max(m.gpu_kv_tokens, m.host_kv_tokens)))
        + " tokens"};
  r.token_latency_s /= static_cast<double>(r.requests);
  if (from.ended == to.ended) from = {}, to = {now, tokens, r.requests};
  if (to.time > from.time) {
    r.requests_per_s = static_cast<double>(to.ended - from.ended) / (to.time - from.time);
    r.tokens_per_s = (to.tokens - from.tokens) / (to.time - from.time);
  }
  r.seconds = now;
  r.mean_running /= std::max(now, 1e-9);
  r.tokens = static_cast<uint64_t>(tokens);
  r.host_share = tokens > 0 ? host_tokens / tokens : 0;
  return r;
}

} // namespace lamella::scheduler
