#include "model/sampling.hpp"

#include "model/grammar/output_constraint.hpp"

#include <limits>

namespace lamella::model {

token_history::token_history(std::shared_ptr<output_constraint> constraint)
    : constraint_{std::move(constraint)}, state_{constraint_ ? constraint_->start() : 0} {}

void token_history::generated(token_id token) {
  ++counts_[token];
  ++generated_;
  if (constraint_) state_ = constraint_->advance(state_, token);
}

logit_changes token_history::changes(const sampling& wanted) const {
  return {edits(wanted), constraint_ ? constraint_->mask(state_) : nullptr};
}

std::vector<logit_edit> token_history::edits(const sampling& wanted) const {
  std::map<token_id, logit_edit> changed;
  const auto edit = [&](token_id t) -> logit_edit& {
    return changed.try_emplace(t, logit_edit{t, 1, 0}).first->second;
  };
  const bool penalties = wanted.presence_penalty != 0 || wanted.frequency_penalty != 0
                         || wanted.repetition_penalty != 1;
  if (penalties)
    for (const auto& [token, count] : counts_) {
      if (wanted.repetition_penalty != 1) edit(token).scale = wanted.repetition_penalty;
      if (count > 0)
        edit(token).add -=
            wanted.presence_penalty + wanted.frequency_penalty * static_cast<float>(count);
    }
  for (const auto& [token, bias] : wanted.bias) edit(token).add += bias;
  if (generated_ < wanted.min_tokens)
    for (auto token : wanted.end_tokens) edit(token).add = -std::numeric_limits<float>::infinity();
  std::vector<logit_edit> result;
  result.reserve(changed.size());
  for (const auto& [token, x] : changed) result.push_back(x);
  return result;
}

} // namespace lamella::model
