/// The way of prompts' KV from prefill servers to the devices that keep it (L-M27, L-M28).
#pragma once

#include "scheduler/planner/decode_design.hpp"

namespace lamella::scheduler {

/// Each prefill server sends its prompts layer by layer while it computes. All of them share the
/// NICs of the keepers, first come first served, with what decoding leaves: QKV goes first.
class kv_arrivals {
public:
  kv_arrivals(const decode_design& design, const cost_model& cost);

  /// When the KV of `tokens` is there that a server has computed from `from` to `now`, while
  /// decoding occupies the keepers' NICs for `share` of the time. At least the last layer comes
  /// after `now`. Calls come in the order of `now`.
  double arrival(double tokens, double from, double now, double share);

private:
  double kv_bytes_ = 0, layers_ = 0;
  network_path path_;
  double free_ = 0; ///< when the keepers' NICs have everything so far
};

} // namespace lamella::scheduler
