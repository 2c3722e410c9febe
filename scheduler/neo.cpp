#include "scheduler/neo.hpp"

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

} // namespace

neo_result simulate_neo(const neo_machine& machine, const cost_model& cost, offload_kind kind,
                        const request_trace& trace) {
  auto m = machine;
  if (kind == offload_kind::none) m.host_kv_tokens = 0;
  if (kind == offload_kind::full) m.gpu_kv_tokens = 0;
  neo_result r;
  neo_state s;
  double now = 0, host_tokens = 0, tokens = 0, from = 0, to = 0;
  size_t next = 0;
  std::vector<double> first(trace.size(), 0); ///< when the first token came
  const auto low = trace.size() * 3 / 10, high = trace.size() * 7 / 10;
  double window_tokens = 0;
  const auto grow = [&](neo_sequence& x) {
    ++x.context;
    --x.left;
    tokens += 1;
    if (r.requests >= low && r.requests < high) window_tokens += 1;
  };
  const auto end_those = [&](std::vector<neo_sequence>& all) {
    std::erase_if(all, [&](const neo_sequence& x) {
      if (x.left > 0) return false;
      const auto& t = trace[x.index];
      r.token_latency_s += (now - t.arrival_s) / t.output_tokens;
      r.e2e.add(now - t.arrival_s);
      if (t.output_tokens > 1) r.tbt.add((now - first[x.index]) / (t.output_tokens - 1));
      ++r.requests;
      if (r.requests == low) from = now;
      if (r.requests == high) to = now;
      return true;
    });
  };
  while (next < trace.size() || !s.waiting.empty() || !s.on_gpu.empty() || !s.on_host.empty()) {
    if (s.waiting.empty() && s.on_gpu.empty() && s.on_host.empty())
      now = std::max(now, trace[next].arrival_s);
    // The planner looks at no more prompts than fit an iteration; a short list keeps it fast.
    for (; next < trace.size() && trace[next].arrival_s <= now && s.waiting.size() < 256; ++next) {
      const auto& t = trace[next];
      if (static_cast<double>(t.prompt_tokens) + t.output_tokens + 1
          > std::max(m.gpu_kv_tokens, m.host_kv_tokens))
        throw std::invalid_argument{"request " + std::to_string(next) + " fits into no cache"};
      s.waiting.push_back({static_cast<uint32_t>(next), t.prompt_tokens, t.output_tokens});
    }
    double swapped = 0;
    const auto plan = plan_iteration(s, m, cost, kind, swapped);
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
  }
  r.token_latency_s /= static_cast<double>(std::max<uint64_t>(1, r.requests));
  if (to > from) {
    r.requests_per_s = static_cast<double>(high - low) / (to - from);
    r.tokens_per_s = window_tokens / (to - from);
  }
  r.seconds = now;
  r.mean_running /= std::max(now, 1e-9);
  r.tokens = static_cast<uint64_t>(tokens);
  r.host_share = tokens > 0 ? host_tokens / tokens : 0;
  return r;
}

} // namespace lamella::scheduler
