#include "scheduler/admission.hpp"

#include <algorithm>

namespace lamella::scheduler {

admission_verdict admission::offer(const admission_entry& entry) {
  if (entry.resumed) {
    // Behind its like, before everybody else.
    auto place = std::find_if(queue_.begin(), queue_.end(), [&](const auto& x) {
      return !x.resumed || (entry.has_kv && !x.has_kv);
    });
    queue_.insert(place, entry);
  } else {
    if (queue_.size() >= limits_.queue_requests) return admission_verdict::queue_requests;
    // Alone, a prompt that is longer than the limit waits for nobody.
    if (!queue_.empty() && tokens_ + entry.prompt_tokens > limits_.queue_tokens)
      return admission_verdict::queue_tokens;
    queue_.push_back(entry);
  }
  tokens_ += entry.prompt_tokens;
  return admission_verdict::queued;
}

std::optional<admission_entry> admission::next(uint32_t seats, uint32_t slots) const {
  if (queue_.empty()) return std::nullopt;
  const auto& head = queue_.front();
  if (head.choices > seats || head.slots > slots) return std::nullopt;
  return head;
}

void admission::started() {
  tokens_ -= queue_.front().prompt_tokens;
  queue_.pop_front();
}

std::optional<admission_entry> admission::take(sequence_id first) {
  auto found =
      std::find_if(queue_.begin(), queue_.end(), [&](const auto& x) { return x.first == first; });
  if (found == queue_.end()) return std::nullopt;
  const auto entry = *found;
  tokens_ -= entry.prompt_tokens;
  queue_.erase(found);
  return entry;
}

} // namespace lamella::scheduler
