#include "scheduler/planner/prefill_pool.hpp"

#include <algorithm>

namespace lamella::scheduler {

void prefill_pool::resize(uint32_t servers) {
  wanted_ = servers;
  if (servers_.size() < wanted_) servers_.resize(wanted_);
  drop_free();
}

void prefill_pool::drop_free() {
  for (auto i = servers_.size(); i-- > 0 && servers_.size() > wanted_;)
    if (servers_[i].prompts.empty()) servers_.erase(servers_.begin() + static_cast<ptrdiff_t>(i));
}

void prefill_pool::start(double now) {
  for (auto& s : servers_) {
    if (!s.prompts.empty()) continue;
    double tokens = 0, attention = 0;
    while (!queue_.empty()
           && (s.prompts.empty() || tokens + queue_.front().tokens <= batch_tokens_)) {
      const auto& x = queue_.front();
      tokens += x.tokens;
      attention += cost_.prompt_attention_s(server_, x.tokens, 0);
      s.prompts.push_back(x);
      queue_.pop_front();
    }
    if (s.prompts.empty()) return;
    s.start = now;
    s.end = now + cost_.model_s(server_, tokens) + cost_.all_reduce_s(server_, tokens) + attention;
  }
}

double prefill_pool::next_end() const {
  double next = 1e300;
  for (const auto& s : servers_)
    if (!s.prompts.empty()) next = std::min(next, s.end);
  return next;
}

double prefill_pool::busy_s(double now) const {
  auto busy = busy_;
  for (const auto& s : servers_)
    if (!s.prompts.empty()) busy += std::min(now, s.end) - s.start;
  return busy;
}

std::vector<prefill_pool::done> prefill_pool::finish(double now) {
  std::vector<done> all;
  for (auto& s : servers_) {
    if (s.prompts.empty() || s.end > now) continue;
    busy_ += s.end - s.start;
    for (const auto& x : s.prompts) all.push_back({x, s.end - s.start});
    s.prompts.clear();
  }
  drop_free();
  return all;
}

} // namespace lamella::scheduler
