/// The KV of prompts and answers, kept for prompts with a shared prefix (V-M12; decision 22).
///
/// A radix tree of token sequences: a shared prefix is stored once, and a path from the root is a
/// prefix of a sequence. The K and V of a position depend only on the tokens up to it (decision 9),
/// so slots taken from the cache hold the bytes that prefill would compute.
#pragma once

#include "model/token.hpp"
#include "scheduler/slot_pool.hpp"
#include "scheduler/slot_set.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace lamella::scheduler {

/// The prefix cache of one slot table, which is passed to every call that changes it. The cache
/// holds one reference to each of its slots and evicts the least recently used leaf first, from the
/// end of a sequence backwards. Sequences of different scopes (of different callers) never share
/// slots.
///
/// Holds as many tokens as slots. Cost of a call: O(tokens compared, kept or evicted), and O(log
/// leaves) per node on the path.
class prefix_cache {
public:
  using token_id = model::token_id;
  using nanoseconds = std::chrono::nanoseconds;

  /// Shortest prefix in tokens that is worth a run of its own.
  static constexpr uint32_t least_tokens = slot_pool::run_slots;

  prefix_cache() = default;
  prefix_cache(prefix_cache&&) = default;
  ~prefix_cache();

  /// The slots of the longest cached prefix of `tokens`, in order of position; none when it is
  /// shorter than `least_tokens`. The caller must share() the slots in the pool before it uses
  /// them.
  std::vector<slot_run> find(uint64_t scope, std::span<const token_id> tokens, nanoseconds now);

  /// Like find(), without refreshing the entry's age.
  std::vector<slot_run> look(uint64_t scope, std::span<const token_id> tokens) const;

  /// Inserts the uncached part of a sequence whose K and V are in `runs`, position by position.
  void keep(slot_pool& pool, uint64_t scope, std::span<const token_id> tokens,
            std::span<const slot_run> runs, nanoseconds now);

  /// Evicts slots until `free` are free in the pool, or none that only this cache refers to are
  /// left.
  void make_room(slot_pool& pool, uint32_t free);

  /// Evicts entries that were not used since `before`.
  void expire(slot_pool& pool, nanoseconds before);

  /// Evicts the slots of the set, everything behind them in their sequences, and the tokens before
  /// them in the same node.
  void forget(slot_pool& pool, const slot_set& lost);

  void clear(slot_pool& pool);

  bool empty() const { return leaves_.empty(); }
  /// Tokens, each with its slot.
  uint32_t slots() const { return slots_; }

private:
  struct node;
  using use = std::pair<nanoseconds, uint64_t>; ///< the last one, then the number of the node
  struct node {
    uint64_t number = 0;
    uint64_t scope = 0;
    node* parent = nullptr; ///< null: a root, which has no tokens
    std::vector<token_id> tokens;
    std::vector<slot_run> runs;
    std::map<token_id, std::unique_ptr<node>> children; ///< by their first token
    nanoseconds used{0};
  };
  /// How far a sequence goes along the tree.
  struct place {
    node* at = nullptr;   ///< the last node that it enters
    uint32_t inside = 0;  ///< so many tokens of that one
    uint32_t matched = 0; ///< so many tokens of the sequence
  };

  static place walk(node& root, std::span<const token_id> tokens);
  static std::vector<slot_run> runs_to(const place& end);
  place enter(node& root, std::span<const token_id> tokens, nanoseconds now);
  void touch(node& x, nanoseconds now);
  node& add(node& parent, std::span<const token_id> tokens, std::vector<slot_run> runs,
            nanoseconds now);
  void split(node& x, uint32_t at);
  void cut(slot_pool& pool, node& leaf, uint32_t tokens);
  void unlink(node& leaf);
  static bool is_leaf(const node& x) { return x.parent != nullptr && x.children.empty(); }
  static use key_of(const node& x) { return {x.used, x.number}; }

  std::map<uint64_t, std::unique_ptr<node>> roots_; ///< by scope; each has children
  std::map<use, node*> leaves_;                     ///< least recently used first
  uint64_t numbers_ = 0;
  uint32_t slots_ = 0;
};

/// Of several tables, the one whose cache has the longest prefix of `tokens`. Conditions: the
/// prefix is more than half of `tokens`; the table has room for `slots` in all, cached ones
/// included, and `keep_free` more; and its use exceeds that of the emptiest table by at most a
/// quarter of a table. Nothing otherwise: then an even load matters more.
std::optional<uint32_t> table_with(std::span<const slot_pool> pools,
                                   std::span<const prefix_cache> caches, uint64_t scope,
                                   std::span<const model::token_id> tokens, uint64_t slots,
                                   uint32_t keep_free);

} // namespace lamella::scheduler
