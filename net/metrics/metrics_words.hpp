/// Buckets of the histograms and values of the labels. Internal to net/metrics/metrics.
#pragma once

#include "base/time_histogram.hpp"

#include <prometheus/histogram.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lamella::net {

namespace metric_words {

using buckets = prometheus::Histogram::BucketBoundaries;

/// Label values that come from outside are limited in number; the rest count as "other".
inline constexpr size_t names_max = 64;

inline const buckets first_token_buckets{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                                         1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
inline const buckets gap_buckets{.001, .0025, .005, .01, .025, .05, .075, .1, .15, .2, .3,
                                 .4,   .5,    .75,  1,   2.5,  5,   7.5,  10, 20,  40, 80};
inline const buckets duration_buckets{.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                      30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
inline const buckets iteration_buckets = [] {
  buckets bounds;
  for (const std::chrono::duration<double> x : iteration_bounds) bounds.push_back(x.count());
  return bounds;
}();
inline const buckets rtt_buckets{1e-6,   2.5e-6, 5e-6, 1e-5,   2.5e-5, 5e-5, 1e-4,
                                 2.5e-4, 5e-4,   1e-3, 2.5e-3, 5e-3,   1e-2, 1e-1};
inline const buckets batch_buckets{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
inline const buckets step_token_buckets{1,   8,    16,   32,   64,   128,  256,
                                        512, 1024, 2048, 4096, 8192, 16384};
inline const buckets stop_buckets{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
inline const buckets pause_buckets{.01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60};

/// 1 2 5 10 20 50 ... up to the context.
inline buckets token_buckets(uint64_t context) {
  buckets bounds;
  for (uint64_t decade = 1; decade <= context; decade *= 10)
    for (const uint64_t digit : {1, 2, 5})
      if (decade * digit <= context) bounds.push_back(static_cast<double>(decade * digit));
  return bounds;
}

inline constexpr std::string_view outcomes[] = {"done", "error", "cancelled", "rejected"};
inline constexpr std::string_view ends[] = {"stop", "length", "abort"};
inline constexpr std::string_view rejections[] = {"queue_requests", "queue_tokens", "rate",
                                                  "draining",       "loading",      "no_capacity"};
inline constexpr std::string_view fences[] = {"epoch", "attempt", "position"};
inline constexpr std::string_view faults[] = {"epoch", "attempt", "duplicate", "damaged"};
inline constexpr std::string_view damages[] = {"transfer", "rest", "rebuild"};
inline constexpr std::string_view slot_states[] = {"free", "used", "cached", "parity", "orphan"};
inline constexpr std::string_view stages[] = {"slice", "attention", "combine", "send", "wait"};
inline constexpr std::string_view conditions[] = {"missing", "loading", "live", "failing"};
inline constexpr std::string_view phases[] = {"map", "weights", "join", "warm"};
inline constexpr std::string_view mailboxes[] = {"gateway", "membership", "scheduler", "allocator",
                                                 "batch"};
inline constexpr std::string_view roles[] = {"model", "attention", "prefill"};
inline constexpr std::string_view span_losses[] = {"queue", "collector", "stopped"};
inline constexpr std::string_view change_ends[] = {"done", "rolled_back", "refused"};
inline constexpr std::string_view methods[] = {"replica", "parity", "recompute", "replay"};

} // namespace metric_words

} // namespace lamella::net
