#include "model/grammar/output_constraint.hpp"

namespace lamella::model {

output_constraint::output_constraint(grammar g, std::shared_ptr<const token_trie> vocabulary,
                                     std::vector<token_id> ends, uint32_t vocabulary_size)
    : vocabulary_{std::move(vocabulary)}, ends_{std::move(ends)}, vocabulary_size_{vocabulary_size},
      states_{std::move(g), vocabulary_->single_bytes()}, start_{states_.start()} {}

output_constraint::state_id output_constraint::advance(state_id from, token_id token) {
  const std::lock_guard guard{lock_};
  states_.begin_steps();
  for (const char byte : vocabulary_->bytes_of(token)) {
    if (is_dead(from)) break;
    from = states_.step(from, static_cast<uint8_t>(byte));
  }
  return from;
}

std::shared_ptr<const token_mask> output_constraint::mask(state_id state) {
  const std::lock_guard guard{lock_};
  if (const auto known = masks_.find(state); known != masks_.end()) return known->second;
  states_.begin_steps();
  const auto before = states_.here();
  auto made = std::make_shared<const token_mask>(make_mask(state));
  states_.forget(before);
  if (const auto bytes = made->words.size() * sizeof(uint32_t);
      masks_bytes_ + bytes <= masks_kept_bytes) {
    masks_bytes_ += bytes;
    masks_.emplace(state, made);
  }
  return made;
}

/// Goes through the vocabulary's tree, and past what is below a byte that is not allowed.
token_mask output_constraint::make_mask(state_id state) {
  token_mask mask{std::vector<uint32_t>((vocabulary_size_ + 31) / 32)};
  const auto allow = [&](token_id t) {
    if (t < vocabulary_size_) mask.words[t / 32] |= 1u << t % 32;
  };
  if (states_.accepts(state))
    for (const auto t : ends_) allow(t);
  const auto& nodes = vocabulary_->nodes();
  const auto& tokens = vocabulary_->tokens();
  std::vector<state_id> at(vocabulary_->depth() + 1, state); // by bytes from the root
  for (size_t i = 0; i + 1 < nodes.size();) {
    const auto& node = nodes[i];
    const auto next = states_.step(at[node.depth - 1], node.byte);
    if (is_dead(next)) {
      i = node.behind;
      continue;
    }
    at[node.depth] = next;
    for (auto t = node.first_token; t < nodes[i + 1].first_token; ++t) allow(tokens[t]);
    ++i;
  }
  return mask;
}

bool output_constraint::worn() const {
  const std::lock_guard guard{lock_};
  return states_.full();
}

size_t output_constraint::memory_bytes() const {
  const std::lock_guard guard{lock_};
  return states_.memory_bytes() + masks_bytes_;
}

} // namespace lamella::model
