/// Makes pages of a KV cache resident before KV is written there.
#pragma once

#include "gpu/ring/listener.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace lamella::gpu {

/// A cache has its layers one behind the other, so its first slots lie on as many huge pages as the
/// model has layers, and each is zeroed at its first use: 60 MiB at once for 30 layers, a tenth of
/// a second in which a shard that serves would attend to nobody. Zeroed here instead, page by page,
/// by a thread that begins with the first call and ends with the object: of low priority or, before
/// Linux 6.4, with rests between pages. Pages that nothing waits for are made with longer rests, so
/// that they take a tenth of a core at most, and after all that something waits for.
///
/// For memory of this host; with other memory nothing happens. Thread-safe.
class kv_pages {
public:
  using ready_flag = std::shared_ptr<const std::atomic<bool>>;

  /// Of a layer, that become resident together: a huge page.
  static constexpr size_t page_bytes = 2 << 20;
  /// Fewer slots in use are worth no pages ahead, and no giving back of pages either: the canary of
  /// an idle service takes some every few seconds, and each layer has a huge page of its own.
  static constexpr uint32_t slots_worth_pages = 64;

  /// A cache at `data` of `layers` layers, each `layer_bytes` long. Null: memory of another device.
  /// `waiter`: who may sleep until a flag of prepare() becomes true, and is rung then; may be null.
  kv_pages(std::byte* data, uint32_t layers, size_t layer_bytes, size_t row_bytes,
           std::shared_ptr<listener> waiter)
      : data_{data}, layers_{layers}, layer_bytes_{layer_bytes},
        row_bytes_{row_bytes}, waiter_{std::move(waiter)} {}
  ~kv_pages();
  kv_pages(const kv_pages&) = delete;
  kv_pages& operator=(const kv_pages&) = delete;

  /// Begins with the pages of some slots, and goes on with those behind them, as keep_ahead() does.
  /// The flag becomes true, and the waiter is rung, when the first are resident; at once, when all
  /// of them were already, or when they are too few to matter.
  template <class Runs> ready_flag prepare(const Runs& runs) {
    std::vector<window> wanted;
    for (const auto& run : runs) add_windows(wanted, run.first, run.length);
    auto ready = begin(std::move(wanted));
    keep_ahead(runs);
    return ready;
  }

  /// Begins with those pages of some slots that are missing, and of a window behind each run, so
  /// that a sequence that grows finds its pages: a window is thousands of tokens, so nothing waits
  /// for them. Other pages of the cache stay as they are.
  /// Cost: O(windows of the runs) where nothing is missing.
  template <class Runs> void keep_ahead(const Runs& runs) {
    if (data_ == nullptr) return;
    std::vector<window> wanted;
    std::lock_guard lock{mutex_};
    for (const auto& run : runs) add_missing(wanted, run.first, run.length);
    if (!wanted.empty()) begin_ahead(wanted);
  }

  /// All pages have been given back to the system. What was begun before is not gone on with, and
  /// its flags become true.
  void forget();

private:
  using window = uint32_t; ///< of slots: of their rows a layer has one huge page, or a part of it
  enum class state : uint8_t { missing, ahead, awaited, resident };

  struct task {
    std::vector<window> windows;
    std::shared_ptr<std::atomic<bool>> done;
    uint64_t given_back; ///< when it was begun
  };
  void add_windows(std::vector<window>& to, uint32_t first, uint32_t length) const;
  /// The lock is held.
  state state_of(window x) const { return x < states_.size() ? states_[x] : state::missing; }
  /// Those that nobody has asked for, one behind them included; the lock is held.
  void add_missing(std::vector<window>& to, uint32_t first, uint32_t length) const;
  ready_flag begin(std::vector<window> wanted);
  /// The lock is held.
  void begin_ahead(const std::vector<window>& wanted);
  /// The lock is held.
  void mark(window x, state now);
  void wake();
  void run();
  struct pace {
    int rest;    ///< after a page, in times that it took
    bool yields; ///< to windows that something waits for
  };
  /// Makes the pages of all layers resident; false where that was broken off.
  bool make(std::unique_lock<std::mutex>& lock, window x, pace how);
  /// Makes the page of one layer resident.
  void touch(window x, uint32_t layer) const;

  std::byte* const data_;
  const uint32_t layers_;
  const size_t layer_bytes_, row_bytes_;
  const std::shared_ptr<listener> waiter_;
  mutable std::atomic<bool> ending_{false};
  std::mutex mutex_; ///< of the next ones
  std::condition_variable changed_;
  std::vector<state> states_; ///< by window; those behind are missing
  uint64_t given_back_ = 0;   ///< how often all pages were
  std::deque<task> tasks_;    ///< something waits for each
  std::deque<window> ahead_;  ///< nothing does
  std::thread thread_;
};

} // namespace lamella::gpu
