/// Prompts of a simulated run: on servers of their own, or in pieces beside decoding.
#include "scheduler/planner/simulator_run.hpp"

#include "scheduler/kv/kv_grants.hpp"

#include <algorithm>

namespace lamella::scheduler::decoding {

/// Its slots are taken: what is to be computed is the prompt, and what a request that was preempted
/// has generated.
void run::begin_prompt(uint32_t index) {
  auto& s = states_[index];
  s.at = place::prompt;
  if (s.generated > 0) result_.recomputed_tokens += tokens_of(index) - s.cached;
  if (prompts_)
    prompts_->add({index, s.stamp, tokens_of(index)});
  else
    batches_[s.batch].prompts.add(id_of(index), tokens_of(index), s.cached);
}

double run::next_prompt() const {
  const auto moved = moving_.empty() ? 1e300 : moving_.top().at_s;
  return prompts_ ? std::min(prompts_->next_end(), moved) : moved;
}

bool run::prompts_under_way() const { return next_prompt() < 1e300; }

void run::end_prompts() {
  for (const auto& [prompt, seconds] : prompts_->finish(now_)) {
    const auto& s = states_[prompt.index];
    if (s.at != place::prompt || s.stamp != prompt.stamp) continue; // it lost its slots meanwhile
    const auto there = arrivals_->arrival(prompt.tokens, now_ - seconds, now_, nic_share());
    first_token(prompt.index, there - now_);
  }
  while (!moving_.empty() && moving_.top().at_s <= now_) {
    const auto x = moving_.top();
    moving_.pop();
    auto& s = states_[x.index];
    if (s.at != place::moving || s.stamp != x.stamp) continue;
    s.at = place::joining;
    batches_[s.batch].joining.push_back(x.index);
  }
}

/// How much of the time decoding occupies the NICs of those who keep the KV.
double run::nic_share() const {
  double share = 0;
  for (const auto& b : batches_)
    if (b.running && b.end > b.start) share += b.times.memory_nics / (b.end - b.start);
  return share;
}

void run::end_pieces(batch_run& b) {
  for (const auto& x : b.pieces)
    if (x.last) first_token(index_of_id(x.sequence), 0);
  b.pieces.clear();
}

/// A prompt's own token is there; the others follow when its KV has arrived.
void run::first_token(uint32_t index, double transfer_s) {
  auto& s = states_[index];
  keep_prompt(index);
  ++s.generated;
  ++result_.tokens;
  if (measuring_) measured_tokens_ += 1;
  if (!s.answered)
    add_ttft(index);
  else // computed again: its last token was before that
    add_tbt(now_ - s.token_s);
  s.token_s = now_;
  s.answered = true;
  if (s.generated >= trace_[index].output_tokens) {
    ++s.stamp;
    give_back(index);
    ++result_.requests;
    result_.e2e.add(now_ - arrival_of(index));
  } else if (transfer_s > 0) {
    s.at = place::moving;
    moving_.push({now_ + transfer_s, index, s.stamp});
  } else {
    s.at = place::joining;
    batches_[s.batch].joining.push_back(index);
  }
}

void run::give_back(uint32_t index) {
  auto& s = states_[index];
  --seats_[s.batch];
  release(kv_, id_of(index));
  s.at = place::outside;
}

} // namespace lamella::scheduler::decoding
