/// Times of the machines of a service, measured while it runs (piecewise linear tables as in
/// NEO 3.2 and Splitwise V-B; N-M06, S-M23).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lamella::scheduler {

/// Seconds of one kind of work by its size: a table of the first samples of each power of two,
/// joined by straight lines, times a correction, measured over predicted. Single samples
/// that are far off change neither much: both are medians. Cost: O(64) for a prediction.
class size_times {
public:
  /// Samples of a size that make its point.
  static constexpr size_t first_samples = 5;
  /// Newest samples that the correction rests on.
  static constexpr size_t newest_samples = 16;
  /// The correction lies between its inverse and this. Where the samples are beyond it, the table
  /// is of another machine: it is measured anew.
  static constexpr double correction_most = 4;

  /// `proportional`: no units take no time, as attention, which reads what it attends to (L-M02).
  /// Otherwise a smaller size than any that was measured takes as long as the smallest, as launches
  /// that read all weights (L-M01).
  explicit size_times(bool proportional = false) : proportional_{proportional} {}

  /// Work of `units` units has taken `seconds`. What is not above 0, or not finite, is ignored.
  void add(double units, double seconds) {
    if (!(units > 0 && seconds > 0 && std::isfinite(units) && std::isfinite(seconds))) return;
    ++samples_;
    auto& size = sizes_[size_of(units)];
    if (size.size() < first_samples) {
      size.push_back({units, seconds});
      return;
    }
    const auto ratio = seconds / *of_table(units);
    if (ratios_.size() < newest_samples)
      ratios_.push_back(ratio);
    else
      ratios_[next_ratio_++ % newest_samples] = ratio;
    correct();
  }

  /// Seconds of so many units; nothing before the first sample.
  std::optional<double> predict(double units) const {
    auto seconds = of_table(units);
    if (seconds) *seconds *= correction_;
    return seconds;
  }

  /// Measured over predicted, of the newest samples; 1 before there are any.
  double correction() const { return correction_; }
  uint64_t samples() const { return samples_; }

private:
  struct point {
    double units = 0, seconds = 0;
  };

  static size_t size_of(double units) {
    return std::bit_width(static_cast<uint64_t>(std::min(units, 0x1p62)));
  }

  template <class T, class By> static T median(std::vector<T> x, By by) {
    const auto middle = x.begin() + static_cast<ptrdiff_t>(x.size() / 2);
    std::nth_element(x.begin(), middle, x.end(),
                     [by](const T& a, const T& b) { return by(a) < by(b); });
    return *middle;
  }

  void correct() {
    const auto found = median(ratios_, [](double x) { return x; });
    if (ratios_.size() == newest_samples
        && (found > correction_most || found < 1 / correction_most)) {
      sizes_ = {};
      ratios_.clear();
      next_ratio_ = 0;
      correction_ = 1;
      return;
    }
    correction_ = std::clamp(found, 1 / correction_most, correction_most);
  }

  std::vector<point> points() const {
    std::vector<point> found;
    if (proportional_) found.push_back({});
    for (const auto& size : sizes_)
      if (!size.empty()) found.push_back(median(size, [](const point& x) { return x.seconds; }));
    return found;
  }

  std::optional<double> of_table(double units) const {
    const auto known = points();
    if (known.size() == (proportional_ ? 1u : 0u)) return std::nullopt;
    if (units <= known.front().units || known.size() == 1) return known.front().seconds;
    auto above = std::ranges::find_if(known, [&](const point& x) { return x.units >= units; });
    if (above == known.end()) --above; // the last line goes on
    const auto& [to_units, to_seconds] = *above;
    const auto& [from_units, from_seconds] = *(above - 1);
    const auto slope = std::max(0.0, (to_seconds - from_seconds) / (to_units - from_units));
    if (units > to_units) return to_seconds + slope * (units - to_units);
    return from_seconds
           + (to_seconds - from_seconds) * (units - from_units) / (to_units - from_units);
  }

  bool proportional_;
  std::array<std::vector<point>, 64> sizes_; ///< by powers of two
  std::vector<double> ratios_;               ///< of the newest samples beyond the table's
  size_t next_ratio_ = 0;                    ///< the oldest of them
  double correction_ = 1;
  uint64_t samples_ = 0;
};

/// What takes time, and its unit.
enum class timed_work : uint8_t {
  launch,           ///< the slices of an iteration on its replicas, all together; rows
  attention,        ///< of an iteration in which sequences decode, at one home; attended positions
  prompt_attention, ///< of an iteration with prompts, at one home; attended positions
};

/// "launch", "attention" or "prompt attention".
constexpr const char* name_of(timed_work what) {
  constexpr std::array names{"launch", "attention", "prompt attention"};
  return names[static_cast<size_t>(what)];
}

/// What decodes at a time: sums over all batches.
struct decode_load {
  double rows = 0;      ///< sequences in an iteration of each batch
  double positions = 0; ///< that they attend to
};

/// Times of a service by kind of work and by home (the attention cell; empty where the pool is
/// one), the round trip of its links, and how much it decodes.
class machine_times {
public:
  /// Newest looks that the load rests on.
  static constexpr size_t looks = 16;

  struct entry {
    size_times times;
    double units = 0; ///< of the newest sample
  };
  using table = std::map<std::pair<timed_work, std::string>, entry>;

  void add(timed_work what, const std::string& home, double units, double seconds) {
    const bool proportional = what != timed_work::launch;
    auto& x = entries_.try_emplace({what, home}, entry{size_times{proportional}, 0}).first->second;
    x.times.add(units, seconds);
    x.units = units;
  }

  /// Forgets the homes that are not among these: an iteration waits for them no more.
  void keep_homes(const std::set<std::string>& homes) {
    std::erase_if(entries_, [&](const auto& x) {
      return x.first.first != timed_work::launch && !homes.contains(x.first.second);
    });
  }

  std::optional<double> predict(timed_work what, const std::string& home, double units) const {
    const auto found = entries_.find({what, home});
    return found == entries_.end() ? std::nullopt : found->second.times.predict(units);
  }

  /// Attention of one iteration: it is over when the last home has ended, and each has its share of
  /// the positions.
  std::optional<double> attention_s(double positions) const {
    std::optional<double> longest;
    size_t homes = 0;
    for (const auto& [key, x] : entries_) homes += key.first == timed_work::attention ? 1 : 0;
    for (const auto& [key, x] : entries_) {
      if (key.first != timed_work::attention) continue;
      const auto seconds = x.times.predict(positions / static_cast<double>(homes));
      if (seconds) longest = std::max(longest.value_or(0), *seconds);
    }
    return longest;
  }

  /// The round trip of a link; the shortest of the newest look counts. 0: not known.
  void set_round_trip(double seconds) { round_trip_ = seconds; }
  double round_trip() const { return round_trip_; }

  /// One look at what decodes.
  void note_load(decode_load x) {
    if (loads_.size() == looks) loads_.erase(loads_.begin());
    loads_.push_back(x);
  }

  /// The median of the newest looks; nothing before the first one.
  std::optional<decode_load> load() const {
    if (loads_.empty()) return std::nullopt;
    const auto median = [&](auto of) {
      std::vector<double> all;
      for (const auto& x : loads_) all.push_back(of(x));
      std::ranges::nth_element(all, all.begin() + static_cast<ptrdiff_t>(all.size() / 2));
      return all[all.size() / 2];
    };
    return decode_load{median([](const decode_load& x) { return x.rows; }),
                       median([](const decode_load& x) { return x.positions; })};
  }

  const table& entries() const { return entries_; }

private:
  table entries_;
  double round_trip_ = 0;
  std::vector<decode_load> loads_; ///< oldest first
};

} // namespace lamella::scheduler
