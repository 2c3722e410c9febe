#include "scheduler/neo.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::scheduler {

namespace {

/// Released code: requests come back to the GPU only while this share of its cache is enough.
constexpr double swap_in_below = 0.95;

class planner {
public:
  planner(const neo_machine& machine, const cost_model& cost) : m_{machine}, cost_{cost} {}

  /// T_l of a sub-batch; an empty one would still read the weights if a request joined.
  double linear(double tokens, double prompt_squares) const {
    const auto rows = std::max(1.0, tokens);
    const auto attention =
        2.0 * prompt_squares * shape().heads * shape().head_dim * shape().layers
        / (m_.gpu.kind.flops * m_.gpu.count * cost_.values().attention_flops_efficiency);
    return cost_.model_s(m_.gpu, rows) + cost_.all_reduce_s(m_.gpu, rows) + attention;
  }
  double on_gpu(double rows, double context) const {
    return cost_.attention_s(m_.gpu, rows, context);
  }
  double on_host(double context) const {
    return context * shape().kv_bytes_per_token() / m_.host_bandwidth;
  }
  /// S*: tokens at which computing takes as long as reading the weights.
  double saturation() const {
    const auto& c = cost_.values();
    return m_.gpu.kind.flops * c.matmul_efficiency * shape().element_bytes
           / (2 * m_.gpu.kind.bandwidth * c.weight_read_efficiency);
  }

private:
  const model_shape& shape() const { return cost_.model(); }
  const neo_machine& m_;
  const cost_model& cost_;
};

/// Step 2: the GPU must have room for a token of each of its requests; the last in goes out first.
void swap(neo_state& s, const neo_machine& m, double& swapped) {
  auto used = s.gpu_tokens();
  auto host = s.host_tokens();
  bool out = false;
  while (!s.on_gpu.empty() && used + static_cast<double>(s.on_gpu.size()) > m.gpu_kv_tokens) {
    auto victim = s.on_gpu.back();
    s.on_gpu.pop_back();
    used -= victim.context;
    out = true;
    if (host + victim.context + 1 <= m.host_kv_tokens) {
      host += victim.context;
      swapped += victim.context;
      s.on_host.push_back(victim);
    } else { // nowhere to go: it is computed again, with what it has generated
      s.waiting.insert(s.waiting.begin(), victim);
    }
  }
  while (!out && !s.on_host.empty()
         && used + s.on_host.front().context + static_cast<double>(s.on_gpu.size()) + 1
                <= swap_in_below * m.gpu_kv_tokens) {
    used += s.on_host.front().context;
    swapped += s.on_host.front().context;
    s.on_gpu.push_back(s.on_host.front());
    s.on_host.erase(s.on_host.begin());
  }
}

} // namespace

double neo_state::gpu_tokens() const {
  double sum = 0;
  for (const auto& x : on_gpu) sum += x.context;
  return sum;
}

double neo_state::host_tokens() const {
  double sum = 0;
  for (const auto& x : on_host) sum += x.context;
  return sum;
}

double neo_iteration::time() const {
  if (!two_batches) return linear_0 + gpu_attention + host_0;
  return std::max(linear_0, host_1) + std::max(linear_1 + gpu_attention, host_0);
}

neo_iteration plan_iteration(neo_state& s, const neo_machine& m, const cost_model& cost,
                             offload_kind kind, double& swapped) {
  const planner p{m, cost};
  const bool offload = kind != offload_kind::none;
  swap(s, m, swapped);
  neo_iteration it;
  const double gpu_rows = static_cast<double>(s.on_gpu.size());
  const auto gpu_context = s.gpu_tokens();
  // Step 3: prompts, first come first served; once one goes to the host, later ones do too.
  double tokens_0 = gpu_rows, squares = 0;
  auto gpu_room = m.gpu_kv_tokens - gpu_context - gpu_rows;
  auto host_room = m.host_kv_tokens - s.host_tokens() - static_cast<double>(s.on_host.size());
  for (uint32_t i = 0; i < s.waiting.size(); ++i) {
    const double need = s.waiting[i].context;
    if (tokens_0 > gpu_rows && tokens_0 + need > m.batch_tokens_max) break;
    if (it.host_prefills.empty() && need + 1 <= gpu_room) {
      it.gpu_prefills.push_back(i);
      gpu_room -= need + 1;
    } else if (offload && need + 1 <= host_room) {
      it.host_prefills.push_back(i);
      host_room -= need + 1;
    } else {
      break;
    }
    tokens_0 += need;
    squares += need * need;
  }
  it.gpu_attention = p.on_gpu(gpu_rows, gpu_context);
  const auto gpu_only = [&] {
    neo_iteration one;
    one.gpu_prefills = it.gpu_prefills;
    double tokens = gpu_rows, q = 0;
    for (const auto i : it.gpu_prefills) {
      tokens += s.waiting[i].context;
      q += std::pow(s.waiting[i].context, 2);
    }
    for (const auto i : it.host_prefills) { // up to S*, they cost next to nothing
      if (tokens >= p.saturation()) break;
      one.host_prefills.push_back(i);
      tokens += s.waiting[i].context;
      q += std::pow(s.waiting[i].context, 2);
    }
    one.linear_0 = p.linear(tokens, q);
    one.gpu_attention = it.gpu_attention;
    one.sequences =
        gpu_rows + static_cast<double>(one.gpu_prefills.size() + one.host_prefills.size());
    one.seconds = one.time();
    return one;
  };
  if (!offload) return gpu_only();
  double tokens_1 = 0, context_0 = 0, context_1 = 0;
  const auto update = [&] {
    it.linear_0 = p.linear(tokens_0, squares);
    it.linear_1 = p.linear(tokens_1, 0);
    it.host_0 = p.on_host(context_0);
    it.host_1 = p.on_host(context_1);
  };
  if (kind == offload_kind::simple || kind == offload_kind::symmetric) {
    for (uint32_t i = 0; i < s.on_host.size(); ++i) {
      const bool second = kind == offload_kind::symmetric && i % 2 == 1;
      (second ? it.batch_1 : it.batch_0).push_back(i);
      (second ? context_1 : context_0) += s.on_host[i].context;
      (second ? tokens_1 : tokens_0) += 1;
    }
    update();
    it.two_batches = !it.batch_1.empty();
  } else {
    // Step 4: host requests wherever the GPU hides them (N-M07); none as long as a skipped one.
    double skipped = 1e300;
    for (uint32_t i = 0; i < s.on_host.size(); ++i) {
      const double length = s.on_host[i].context;
      if (length >= skipped) continue;
      if (p.linear(tokens_0, squares) >= p.on_host(context_1 + length)) {
        it.batch_1.push_back(i);
        context_1 += length;
        tokens_1 += 1;
      } else if (p.linear(tokens_1, 0) + it.gpu_attention >= p.on_host(context_0 + length)) {
        it.batch_0.push_back(i);
        context_0 += length;
        tokens_0 += 1;
      } else {
        skipped = length;
      }
    }
    // Nothing hides it and nothing else can run: then it runs in the open.
    if (gpu_rows == 0 && tokens_0 + tokens_1 == 0 && !s.on_host.empty()) {
      it.batch_0.push_back(0);
      context_0 = s.on_host[0].context;
      tokens_0 = 1;
    }
    // Step 5: prompts for the host that hide nothing can wait, down to S*.
    while (!it.host_prefills.empty()) {
      const double length = s.waiting[it.host_prefills.back()].context;
      if (tokens_0 - length < p.saturation()
          || p.linear(tokens_0 - length, squares - length * length) < p.on_host(context_1))
        break;
      tokens_0 -= length;
      squares -= length * length;
      it.host_prefills.pop_back();
    }
    update();
    it.two_batches = !it.batch_1.empty();
  }
  it.sequences = gpu_rows
                 + static_cast<double>(it.gpu_prefills.size() + it.host_prefills.size()
                                       + it.batch_0.size() + it.batch_1.size());
  it.seconds = it.time();
  if (kind != offload_kind::neo) return it;
  // Step 6: whichever gives more tokens per second (x / T; the paper's T / x is a slip, C15).
  auto one = gpu_only();
  return one.sequences > 0 && one.sequences / one.seconds > it.sequences / it.seconds ? one : it;
}

} // namespace lamella::scheduler
