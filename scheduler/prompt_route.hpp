/// Which machine computes a prompt (Splitwise IV-A; S-M03, S-M05, S-M07).
#pragma once

#include "scheduler/machine_label.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lamella::scheduler {

/// The prompts of a machine, as the router knows them.
struct prompt_queue {
  machine_pool pool = machine_pool::prompt;
  uint64_t pending = 0; ///< tokens of its prompts that are not computed yet
  bool idle = true;     ///< it has no prompt
  bool down = false;
};

struct prompt_route {
  uint32_t machine = 0;
  bool joins_mixed = false; ///< it was a token machine until now
};

/// Of the machines for which `may` holds, the one with the shortest queue (S-M05); of equal ones
/// the first from the `turn`-th of them on, in a circle, so that idle machines take turns. Nothing
/// where there is none. O(machines).
template <class May>
std::optional<uint32_t> shortest_queue(std::span<const prompt_queue> queues, uint64_t turn,
                                       const May& may) {
  std::vector<uint32_t> candidates;
  for (uint32_t i = 0; i < queues.size(); ++i)
    if (!queues[i].down && may(queues[i])) candidates.push_back(i);
  std::optional<uint32_t> best;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto machine = candidates[(turn + i) % candidates.size()];
    if (!best || queues[machine].pending < queues[*best].pending) best = machine;
  }
  return best;
}

/// The same of one pool.
inline std::optional<uint32_t> shortest_queue(std::span<const prompt_queue> queues, uint64_t turn,
                                              machine_pool pool) {
  return shortest_queue(queues, turn, [&](const prompt_queue& x) { return x.pool == pool; });
}

/// The machine for a prompt of `tokens` tokens: of the prompt pool, unless its shortest queue would
/// exceed `limit` tokens; then of the mixed pool, likewise; then a token machine, which joins the
/// mixed pool (S-M07). A machine without prompts takes one of any length. Nothing where none of
/// these exists. O(machines).
inline std::optional<prompt_route> route_prompt(std::span<const prompt_queue> queues,
                                                uint64_t tokens, uint64_t limit,
                                                uint64_t turn = 0) {
  for (const auto pool : {machine_pool::prompt, machine_pool::mixed}) {
    const auto best = shortest_queue(queues, turn, pool);
    if (!best) continue;
    const auto& x = queues[*best];
    if (x.pending <= limit && (x.idle || x.pending + tokens <= limit))
      return prompt_route{*best, false};
  }
  if (const auto best = shortest_queue(queues, turn, machine_pool::token))
    return prompt_route{*best, true};
  return std::nullopt;
}

} // namespace lamella::scheduler
