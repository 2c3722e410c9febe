#include "scheduler/batch/iteration_line.hpp"

#include <algorithm>

namespace lamella::scheduler {

bool iteration_line::flight::has_tokens() const {
  return std::any_of(spans.begin(), spans.end(), [](const auto& x) { return x.is_row(); });
}

bool iteration_line::flight::has_prompts() const {
  return !std::all_of(spans.begin(), spans.end(), [](const auto& x) { return x.is_row(); });
}

std::vector<prefill_piece> iteration_line::flight::pieces() const {
  std::vector<prefill_piece> result;
  for (const auto& x : spans)
    if (const auto* piece = std::get_if<prefill_piece>(&x.what)) result.push_back(*piece);
  return result;
}

iteration_line::flight& iteration_line::begin(std::vector<launch_span> spans, bool same,
                                              nanoseconds now) {
  if (!same) ++iteration_;
  return flights_.emplace_back(flight{iteration_, failures_, now, std::move(spans)});
}

bool iteration_line::is_current(uint64_t iteration, uint32_t attempt) const {
  return !flights_.empty() && flights_.front().iteration == iteration
         && flights_.front().attempt == attempt;
}

bool iteration_line::contains(uint64_t iteration, uint32_t attempt) const {
  return std::any_of(flights_.begin(), flights_.end(), [&](const auto& x) {
    return x.iteration == iteration && x.attempt == attempt;
  });
}

iteration_line::flight iteration_line::end() {
  auto oldest = std::move(flights_.front());
  flights_.pop_front();
  failures_ = 0;
  silent_ = false;
  return oldest;
}

std::vector<prefill_piece> iteration_line::fail(bool silent) {
  auto again = flights_.empty() ? std::vector<prefill_piece>{} : flights_.front().pieces();
  flights_.clear();
  silent_ |= silent;
  ++failures_;
  return again;
}

bool iteration_line::may_run_ahead() const {
  return !flights_.empty() && flights_.size() < most && failures_ == 0
         && !flights_.front().has_prompts();
}

} // namespace lamella::scheduler
