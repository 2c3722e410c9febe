/// A byte budget shared by many holders.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace lamella {

/// Limits the bytes of all holders together. Large holders leave a quarter to small ones, so that a
/// few large holders never block the small ones. Thread-safe.
class byte_budget {
public:
  /// Largest size of a small holder.
  static constexpr size_t little = size_t{64} << 10;

  explicit byte_budget(size_t limit) : limit_{limit} {}

  size_t limit() const { return limit_; }
  /// Sets the limit from now on; existing shares above it are kept.
  void set_limit(size_t bytes) { limit_ = bytes; }
  size_t held() const { return held_; }

  /// Counts a rejection for lack of room, for metrics.
  void count_refusal() { ++refusals_; }
  uint64_t refusals() const { return refusals_; }

  /// The share of one holder, returned when the share is destroyed. A share without a budget is
  /// unlimited.
  class share {
  public:
    share() = default;
    explicit share(std::shared_ptr<byte_budget> of) : of_{std::move(of)} {}
    share(share&& other) noexcept
        : of_{std::move(other.of_)}, bytes_{std::exchange(other.bytes_, 0)} {}
    share& operator=(share&& other) noexcept {
      share taken{std::move(other)};
      std::swap(of_, taken.of_);
      std::swap(bytes_, taken.bytes_);
      return *this;
    }
    ~share() { hold(0); }

    size_t bytes() const { return bytes_; }

    /// Resizes the share. False, and unchanged, where the budget is exhausted.
    bool hold(size_t bytes) {
      if (of_ && !of_->change(bytes_, bytes)) return false;
      bytes_ = bytes;
      return true;
    }

    /// Sets an empty share to `bytes`, or to all that is left to large holders where that is less
    /// and the others hold at most a quarter of the limit. So every size has its turn: one holder
    /// at a time has more bytes than its share says. False, and still empty, where neither is so.
    bool hold_in_turn(size_t bytes) {
      if (!of_) bytes_ = bytes;
      return !of_ || of_->take_turn(bytes, bytes_);
    }

  private:
    std::shared_ptr<byte_budget> of_;
    size_t bytes_ = 0;
  };

private:
  /// What all holders may have together when one takes `bytes`.
  static size_t most_of_all(size_t limit, size_t bytes) {
    return bytes <= little ? limit : limit - limit / 4;
  }

  bool change(size_t before, size_t after) {
    if (after <= before) {
      held_ -= before - after;
      return true;
    }
    const size_t most = most_of_all(limit_, after);
    size_t all = held_;
    do {
      if (all + (after - before) > most) return false;
    } while (!held_.compare_exchange_weak(all, all + (after - before)));
    return true;
  }

  bool take_turn(size_t wanted, size_t& taken) {
    const size_t limit = limit_;
    const size_t most = most_of_all(limit, wanted);
    size_t all = held_, now = 0;
    do {
      const size_t left = most - std::min(all, most);
      if (wanted > left && all > limit / 4) return false;
      now = std::min(wanted, left);
    } while (!held_.compare_exchange_weak(all, all + now));
    taken = now;
    return true;
  }

  std::atomic<size_t> limit_;
  std::atomic<size_t> held_{0};
  std::atomic<uint64_t> refusals_{0};
};

} // namespace lamella
