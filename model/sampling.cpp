#include "model/sampling.hpp"

#include <limits>

namespace lamella::model {

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
