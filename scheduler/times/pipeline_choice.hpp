/// Which pipeline `batching.pipeline: auto` takes (V-M17; Lamina v1 6.1, Lamina 4.3).
#pragma once

#include "scheduler/times/iteration_times.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lamella::scheduler {

/// Tokens per second with a batch for each replica, and with more batches that rotate.
struct pipeline_rates {
  double each = 0, rotating = 0;
  friend bool operator==(const pipeline_rates&, const pipeline_rates&) = default;
};

/// The rates of `rows` sequences with `context` tokens in all, divided evenly over the batches.
/// `times_of(rows, context)`: iteration_times of one batch. Cost: O(batches).
template <class Times>
pipeline_rates rates_of(uint32_t replicas, uint32_t more, double rows, double context,
                        Times times_of) {
  const auto rate = [&](uint32_t batches, pipeline_kind kind) {
    const std::vector<iteration_times> all(batches, times_of(rows / batches, context / batches));
    const auto seconds = iteration_s(all, 0, replicas, kind);
    return seconds > 0 ? rows / seconds : 0;
  };
  return {rate(replicas, pipeline_kind::fixed), rate(more, pipeline_kind::rotational)};
}

/// What the choice rests on.
struct pipeline_view {
  uint32_t replicas = 1;
  uint32_t max_batch = 64; ///< sequences that a batch may have
  bool rotates = false;    ///< now
  std::string obstacle{};  ///< why batches cannot overlap here; empty: they can
  double rows = 0;         ///< sequences that decode, of all batches; 0: not known
  double positions = 0;    ///< that their iterations attend to, together
  bool measured = false;   ///< times of launches and of attention are known
};

struct pipeline_choice {
  bool rotates = false; ///< one batch more than replicas; otherwise a batch for each of them
  pipeline_rates rates{};
  std::string reason;
};

/// Several batches pay where each of them is larger than this (V-M17), if no times are known.
constexpr uint32_t large_batch = 128;

/// The other pipeline must be better by this factor: what is measured varies.
constexpr double pipeline_hysteresis = 1.1;

/// Rotates where that gives more tokens per second with the sequences that decode now (V-M17:
/// smaller batches read the weights once for each). Without measured times it goes by large_batch.
/// `times_of` as in rates_of(); called only where `view.measured`.
template <class Times> pipeline_choice choose_pipeline(const pipeline_view& view, Times times_of) {
  if (!view.obstacle.empty()) return {false, {}, view.obstacle};
  const auto more = view.replicas + 1;
  if (!view.measured || view.rows <= 0) {
    const bool large = view.max_batch > large_batch;
    return {large,
            {},
            "nothing is measured: batches of up to " + std::to_string(view.max_batch)
                + (large ? " are larger than " : " are not larger than ")
                + std::to_string(large_batch)};
  }
  if (view.rows < more) return {false, {}, "fewer sequences than batches"};
  auto rates = rates_of(view.replicas, more, view.rows, view.positions, times_of);
  // Fewer batches hold fewer sequences.
  const auto room = static_cast<double>(view.replicas) * view.max_batch;
  if (view.rows > room)
    rates.each =
        rates_of(view.replicas, more, room, view.positions * room / view.rows, times_of).each;
  const auto& [each, rotating] = rates;
  const bool rotates =
      view.rotates ? each <= rotating * pipeline_hysteresis : rotating > each * pipeline_hysteresis;
  return {rotates, rates, rotates == view.rotates ? "measured times: as now" : "measured times"};
}

/// When a service changes its pipeline without another reason to open an epoch: the other one was
/// chosen at each look of a while, and the last change is some time ago. Time is an argument.
class pipeline_patience {
public:
  using seconds = std::chrono::duration<double>;
  static constexpr seconds hold{30}, cool_down{60};

  /// One look. `other`: the pipeline that is chosen now is not the one that runs. True: change.
  bool look(seconds now, bool other) {
    if (!std::exchange(other_, other)) since_ = now;
    return other && now - since_ >= hold && now - opened_ >= cool_down;
  }

  /// An epoch was opened: all begins anew.
  void opened(seconds now) {
    other_ = false;
    opened_ = now;
  }

private:
  bool other_ = false; ///< at the last look
  seconds since_{0};   ///< from when on, if so
  seconds opened_{0};
};

} // namespace lamella::scheduler
