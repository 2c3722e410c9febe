#include "scheduler/planner/papers/neo.hpp"

#include <algorithm>
#include <limits>

namespace lamella::scheduler {

namespace {

/// Released code: requests come back to the GPU only while this share of its cache is enough.
constexpr double swap_in_below = 0.95;

/// Blocks, in tokens, that the requests have after one more token each.
double next_tokens(const std::vector<neo_sequence>& all, const neo_machine& m) {
  double sum = 0;
  for (const auto& x : all) sum += m.paged(x.context + 1.0);
  return sum;
}

/// What a sub-batch does in one iteration. Adding and taking away are O(1).
struct sub_batch {
  double tokens = 0;          ///< rows of its linear operators
  double prompts_s = 0;       ///< attention of its prompts
  double gpu_s = 0;           ///< attention of its requests on the GPU
  double host_context = 0;    ///< tokens that host attention reads
  std::vector<uint32_t> host; ///< positions of its host requests

  double attention_s() const { return prompts_s + gpu_s; }
};

class planner {
public:
  planner(neo_state& s, const neo_machine& m, const neo_profile& p) : s_{s}, m_{m}, p_{p} {}

  /// Step 2: the GPU must have room for a token of each of its requests, and so must the host; the
  /// last in goes out first. Nothing comes back in an iteration in which something leaves.
  void swap(double& swapped) {
    auto gpu = next_tokens(s_.on_gpu, m_), host = next_tokens(s_.on_host, m_);
    bool out = false;
    while (!s_.on_gpu.empty() && gpu > m_.gpu_kv_tokens) {
      const auto victim = s_.on_gpu.back();
      const auto size = m_.paged(victim.context + 1.0);
      s_.on_gpu.pop_back();
      gpu -= size;
      out = true;
      if (host + size <= m_.host_kv_tokens) {
        host += size;
        swapped += victim.context;
        s_.on_host.insert(s_.on_host.begin(), victim);
      } else {
        compute_again(victim);
      }
    }
    while (!s_.on_host.empty() && host > m_.host_kv_tokens) {
      host -= m_.paged(s_.on_host.back().context + 1.0);
      compute_again(s_.on_host.back());
      s_.on_host.pop_back();
    }
    while (!out && !s_.on_host.empty()) {
      const auto& first = s_.on_host.front();
      gpu += m_.paged(first.context + 1.0);
      if (gpu > swap_in_below * m_.gpu_kv_tokens) break;
      swapped += first.context;
      s_.on_gpu.push_back(first);
      s_.on_host.erase(s_.on_host.begin());
    }
    zero_.tokens = static_cast<double>(s_.on_gpu.size());
    if (!s_.on_gpu.empty()) zero_.gpu_s = p_.gpu_s(s_.gpu_tokens());
  }

  /// Step 3: prompts into batch 0, first come first served. Once one goes to the host, later ones
  /// do too. The host keeps some room for those that it has or gets from the GPU.
  void take_prompts(bool offload) {
    auto gpu = m_.gpu_kv_tokens - next_tokens(s_.on_gpu, m_),
         host = m_.host_kv_tokens - next_tokens(s_.on_host, m_);
    for (uint32_t i = 0; i < s_.waiting.size(); ++i) {
      const double length = s_.waiting[i].context, size = m_.paged(length + 1);
      const bool prompts = !gpu_prompts_.empty() || !host_prompts_.empty();
      const bool alone = s_.on_host.empty() && host_prompts_.empty();
      if (prompts && zero_.tokens + length > m_.batch_tokens_max) break;
      if (host_prompts_.empty() && size <= gpu) {
        gpu_prompts_.push_back(i);
        gpu -= size;
      } else if (offload && size + (alone ? 0 : m_.host_kept_tokens) <= host) {
        host_prompts_.push_back(i);
        host -= size;
      } else {
        break;
      }
      add_prompt(zero_, i);
    }
  }

  /// Step 4: host requests into whichever batch has more time left for them (balancing), as long as
  /// the GPU hides both (N-M07); none as long as one that was skipped. With `all`, none is skipped.
  void take_host_requests(bool all) {
    auto skipped = std::numeric_limits<double>::infinity();
    bool to_one = true;
    for (uint32_t i = 0; i < s_.on_host.size(); ++i) {
      const double length = s_.on_host[i].context;
      if (length >= skipped) continue;
      auto& batch = to_one ? one_ : zero_;
      batch.tokens += 1;
      batch.host_context += length;
      if (!all && !hidden()) {
        batch.tokens -= 1;
        batch.host_context -= length;
        skipped = length;
        continue;
      }
      batch.host.push_back(i);
      to_one = left_1() > left_0();
    }
  }

  /// Nothing hides them and nothing else can run: then one runs in the open.
  void run_one_in_the_open() {
    if (zero_.tokens + one_.tokens > 0 || s_.on_host.empty()) return;
    zero_.tokens = 1;
    zero_.host_context = s_.on_host[0].context;
    zero_.host = {0};
  }

  /// Step 5: prompts for the host that hide nothing can wait, down to S*.
  void drop_prompts() {
    while (!host_prompts_.empty()) {
      const auto last = host_prompts_.back();
      remove_prompt(zero_, last);
      if (zero_.tokens < p_.saturation || !hidden()) return add_prompt(zero_, last);
      host_prompts_.pop_back();
    }
  }

  /// Every other host request in batch 1, or none.
  void divide_host_requests(bool in_two) {
    for (uint32_t i = 0; i < s_.on_host.size(); ++i) {
      auto& batch = in_two && i % 2 == 1 ? one_ : zero_;
      batch.host.push_back(i);
      batch.tokens += 1;
      batch.host_context += s_.on_host[i].context;
    }
  }

  bool has_prompts() const { return !gpu_prompts_.empty() || !host_prompts_.empty(); }

  neo_iteration schedule() const {
    neo_iteration it;
    it.gpu_prefills = gpu_prompts_;
    it.host_prefills = host_prompts_;
    it.batch_0 = zero_.host;
    it.batch_1 = one_.host;
    it.linear_0 = linear(zero_);
    it.linear_1 = linear(one_);
    it.gpu_attention = zero_.attention_s();
    it.host_0 = host(zero_);
    it.host_1 = host(one_);
    it.two_batches = !one_.host.empty();
    it.seconds = it.time();
    it.sequences = static_cast<double>(s_.on_gpu.size() + gpu_prompts_.size() + host_prompts_.size()
                                       + zero_.host.size() + one_.host.size());
    return it;
  }

  /// Batch 0 without host requests; of the prompts for the host those up to S*, which cost next to
  /// nothing.
  neo_iteration gpu_only() const {
    sub_batch all;
    all.tokens = static_cast<double>(s_.on_gpu.size());
    all.gpu_s = zero_.gpu_s;
    neo_iteration it;
    it.gpu_prefills = gpu_prompts_;
    for (const auto i : gpu_prompts_) add_prompt(all, i);
    for (const auto i : host_prompts_) {
      if (all.tokens >= p_.saturation) break;
      it.host_prefills.push_back(i);
      add_prompt(all, i);
    }
    it.linear_0 = linear(all);
    it.gpu_attention = all.attention_s();
    it.seconds = it.time();
    it.sequences =
        static_cast<double>(s_.on_gpu.size() + it.gpu_prefills.size() + it.host_prefills.size());
    return it;
  }

private:
  double linear(const sub_batch& b) const { return b.tokens > 0 ? p_.linear_s(b.tokens) : 0; }
  double host(const sub_batch& b) const {
    return b.host_context > 0 ? p_.host_s(b.host_context) : 0;
  }
  double left_0() const { return linear(one_) + zero_.attention_s() - host(zero_); }
  double left_1() const { return linear(zero_) - host(one_); }
  bool hidden() const { return left_0() >= 0 && left_1() >= 0; }

  void add_prompt(sub_batch& b, uint32_t i) const {
    b.tokens += s_.waiting[i].context;
    b.prompts_s += p_.prompt_s(s_.waiting[i].context);
  }
  void remove_prompt(sub_batch& b, uint32_t i) const {
    b.tokens -= s_.waiting[i].context;
    b.prompts_s -= p_.prompt_s(s_.waiting[i].context);
  }
  /// There is no room for it anywhere: with what it has generated, it is a prompt again.
  void compute_again(const neo_sequence& x) { s_.waiting.insert(s_.waiting.begin(), x); }

  neo_state& s_;
  const neo_machine& m_;
  const neo_profile& p_;
  sub_batch zero_, one_; // step 1: both begin empty
  std::vector<uint32_t> gpu_prompts_, host_prompts_;
};

void first_five_steps(planner& p, double& swapped) {
  p.swap(swapped);
  p.take_prompts(true);
  p.take_host_requests(false);
  p.drop_prompts();
  p.run_one_in_the_open();
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

neo_iteration plan_two_batches(neo_state& state, const neo_machine& machine,
                               const neo_profile& profile, double& swapped) {
  planner p{state, machine, profile};
  first_five_steps(p, swapped);
  return p.schedule();
}

neo_iteration plan_iteration(neo_state& state, const neo_machine& machine,
                             const neo_profile& profile, offload_kind kind, double& swapped) {
  planner p{state, machine, profile};
  switch (kind) {
  case offload_kind::none:
    p.swap(swapped);
    p.take_prompts(false);
    return p.schedule();
  case offload_kind::simple:
  case offload_kind::symmetric: // the host does nothing while prompts run
    p.swap(swapped);
    p.take_prompts(true);
    if (!p.has_prompts()) p.divide_host_requests(kind == offload_kind::symmetric);
    return p.schedule();
  case offload_kind::full: // those on the host have nowhere else to go on
    p.swap(swapped);
    p.take_prompts(true);
    p.take_host_requests(true);
    return p.schedule();
  case offload_kind::neo:
    break;
  }
  first_five_steps(p, swapped);
  const auto two = p.schedule(), one = p.gpu_only();
  // Step 6: whichever gives more tokens per second (x / T; the paper's T / x is a slip, C15).
  return one.sequences > 0 && one.sequences / one.seconds > two.sequences / two.seconds ? one : two;
}

} // namespace lamella::scheduler
