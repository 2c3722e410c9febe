/// The KV of prompts and answers, for others that begin alike (V-M12; decision 22).
///
/// A tree of token sequences: what two of them begin with lies there once, and a path from the root
/// is the beginning of a sequence. Because the K and V of a position depend on nothing but the
/// tokens up to it (decision 9), whoever takes slots from here has the bytes it would have
/// computed.
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

/// The prefix cache of one slot table, which every call that changes it is given. It holds one
/// reference to each of its slots, and gives up what was used least recently first, from the end of
/// a sequence on. Sequences of different scopes (of different callers) never share anything.
///
/// Holds as many tokens as slots. Cost of a call: O(tokens it compares, keeps or gives up), and
/// O(log leaves) for each node on the way.
class prefix_cache {
public:
  using token_id = model::token_id;
  using nanoseconds = std::chrono::nanoseconds;

  /// Less than this is not worth a run of its own.
  static constexpr uint32_t least_tokens = slot_pool::run_slots;

  prefix_cache() = default;
  prefix_cache(prefix_cache&&) = default;
  ~prefix_cache();

  /// The slots of the longest beginning of `tokens` that is here, in order of position; none when
  /// that is shorter than `least_tokens`. They are the caller's only once it has shared them.
  std::vector<slot_run> find(uint64_t scope, std::span<const token_id> tokens, nanoseconds now);

  /// The same, for who only wants to know: it counts as no use.
  std::vector<slot_run> look(uint64_t scope, std::span<const token_id> tokens) const;

  /// Keeps what is not here yet of a sequence whose K and V are in `runs`, position by position.
  void keep(slot_pool& pool, uint64_t scope, std::span<const token_id> tokens,
            std::span<const slot_run> runs, nanoseconds now);

  /// Gives slots up until `free` are free in the pool, or none that only this cache refers to are
  /// left.
  void make_room(slot_pool& pool, uint32_t free);

  /// Gives up all that nobody has asked for since `before`.
  void expire(slot_pool& pool, nanoseconds before);

  /// Gives up the slots of the set, all that comes behind them in their sequences, and what lies
  /// before them in the same node.
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

/// Of several tables the one whose cache has the longest beginning of `tokens`, where that is more
/// than half of them, there is room for `slots` in all, with those that are found, and `keep_free`
/// more, and not a quarter of the table more is in use than of the emptiest one; nothing otherwise:
/// then an even load counts for more.
std::optional<uint32_t> table_with(std::span<const slot_pool> pools,
                                   std::span<const prefix_cache> caches, uint64_t scope,
                                   std::span<const model::token_id> tokens, uint64_t slots,
                                   uint32_t keep_free);

} // namespace lamella::scheduler
