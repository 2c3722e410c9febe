/// Which tokens may come next in an answer that is held to a grammar.
#pragma once

#include "model/grammar/grammar_states.hpp"
#include "model/grammar/token_trie.hpp"
#include "model/token_mask.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace lamella::model {

/// A grammar over the tokens of a vocabulary. Every answer that is drawn under its masks is a
/// beginning of a text of the grammar, and can be completed; an end token may come where a text may
/// end, and nothing else may where it must.
///
/// Shared by all requests with the same grammar, which find each other's masks. Safe to be called
/// from several threads.
class output_constraint {
public:
  /// Bytes of masks that are kept.
  static constexpr size_t masks_kept_bytes = size_t{16} << 20;

  /// `ends`: the tokens that end an answer. Throws grammar_error when no text is possible.
  output_constraint(grammar g, std::shared_ptr<const token_trie> vocabulary,
                    std::vector<token_id> ends, uint32_t vocabulary_size);

  using state_id = grammar_states::state_id;
  state_id start() const { return start_; }

  /// After one more token, which must not be an end token. `dead` when the grammar does not allow
  /// it. Throws grammar_error where the grammar is too ambiguous.
  state_id advance(state_id from, token_id token);
  bool is_dead(state_id state) const { return state == grammar_states::dead; }

  /// What may come next. Known masks cost a look-up, others a walk over the vocabulary: some 0.1 to
  /// 5 ms. Throws grammar_error where the grammar is too ambiguous.
  std::shared_ptr<const token_mask> mask(state_id state);

  /// Used up by states, so that a fresh one is better for new requests.
  bool worn() const;
  size_t memory_bytes() const;

private:
  token_mask make_mask(state_id state);

  const std::shared_ptr<const token_trie> vocabulary_;
  const std::vector<token_id> ends_;
  const uint32_t vocabulary_size_;
  mutable std::mutex lock_; ///< guards what follows
  grammar_states states_;
  const state_id start_;
  std::unordered_map<state_id, std::shared_ptr<const token_mask>> masks_;
  size_t masks_bytes_ = 0;
};

} // namespace lamella::model
