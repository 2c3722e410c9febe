/// Prefill servers of a decoding design, each prompt on one of them (S-M10, L-M27).
#pragma once

#include "scheduler/planner/cost/cost.hpp"

#include <cstdint>
#include <deque>
#include <vector>

namespace lamella::scheduler {

/// One prompt in the pool.
struct pooled_prompt {
  uint32_t index = 0;  ///< of its request
  uint32_t stamp = 0;  ///< of the request; stale results are detected by it
  uint32_t tokens = 0; ///< to be computed
};

/// One queue, first come first served; a server that is free takes whole prompts of at most
/// `batch_tokens` together, or one that is longer. Times in seconds; no clock of its own.
class prefill_pool {
public:
  prefill_pool(const cost_model& cost, const device_group& server, uint32_t servers,
               uint32_t batch_tokens = 2048)
      : cost_{cost}, server_{server}, batch_tokens_{batch_tokens},
        servers_(servers), wanted_{servers} {}

  void add(const pooled_prompt& x) { queue_.push_back(x); }

  /// From now on so many servers, at least one. Of those that are too many, each ends its prompts.
  void resize(uint32_t servers);

  /// Free servers take waiting prompts.
  void start(double now);

  /// When the next server is done; far away when none works.
  double next_end() const;

  /// The prompts of all servers that are done by `now`, and how long their iteration took.
  struct done {
    pooled_prompt prompt;
    double seconds = 0;
  };
  std::vector<done> finish(double now);

  /// Seconds that servers have worked until `now`, all of them together.
  double busy_s(double now) const;
  size_t waiting() const { return queue_.size(); }
  /// The prompt that has waited longest, or null.
  const pooled_prompt* oldest() const { return queue_.empty() ? nullptr : &queue_.front(); }

private:
  struct machine {
    std::vector<pooled_prompt> prompts; ///< under way; empty: free
    double start = 0, end = 0;
  };
  const cost_model& cost_;
  device_group server_;
  uint32_t batch_tokens_;
  std::deque<pooled_prompt> queue_;
  void drop_free();

  std::vector<machine> servers_;
  size_t wanted_; ///< servers_ may be more while they end their prompts
  double busy_ = 0;
};

} // namespace lamella::scheduler
