/// Open-addressing tables for what grammar_states looks up all the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lamella::model {

constexpr uint64_t mix(uint64_t hash, uint64_t x) {
  hash = (hash ^ x) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

/// Numbers of things by the things' hashes; who owns the things compares them.
class hash_index {
public:
  static constexpr uint32_t none = ~uint32_t{0};

  /// The number with this hash of which `is` is true; none where there is none.
  template <class Is> uint32_t find(uint64_t hash, Is&& is) const {
    if (slots_.empty()) return none;
    for (auto at = hash & (slots_.size() - 1); slots_[at].second != none;
         at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].first == hash && is(slots_[at].second)) return slots_[at].second;
    return none;
  }

  void add(uint64_t hash, uint32_t number) {
    if (2 * ++size_ > slots_.size()) grow();
    put({hash, number});
  }

  size_t memory_bytes() const { return slots_.capacity() * sizeof(slot); }

private:
  using slot = std::pair<uint64_t, uint32_t>;

  void put(const slot& x) {
    auto at = x.first & (slots_.size() - 1);
    while (slots_[at].second != none) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = x;
  }
  void grow() {
    const auto old = std::exchange(
        slots_, std::vector<slot>(slots_.empty() ? 64 : 2 * slots_.size(), slot{0, none}));
    for (const auto& x : old)
      if (x.second != none) put(x);
  }

  std::vector<slot> slots_; ///< a power of two
  size_t size_ = 0;
};

/// Numbers by hashes, which are taken for the things themselves.
class numbers_by_hash {
public:
  /// The number, and whether it is new: `fresh` then. Valid until the next call.
  std::pair<uint64_t&, bool> try_emplace(uint64_t hash, uint64_t fresh) {
    const auto known = index_.find(hash, [](uint32_t) { return true; });
    if (known != hash_index::none) return {numbers_[known], false};
    index_.add(hash, static_cast<uint32_t>(numbers_.size()));
    return {numbers_.emplace_back(fresh), true};
  }

private:
  hash_index index_;
  std::vector<uint64_t> numbers_;
};

/// A set of numbers that is emptied at no cost.
class visit_set {
public:
  void clear() {
    size_ = 0;
    if (++round_ == 0) { // stamps of long ago would look new
      slots_.assign(slots_.size(), {});
      round_ = 1;
    }
  }

  /// False where it was there.
  bool insert(uint64_t x) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    auto at = start(x);
    for (; slots_[at].round == round_; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].value == x) return false;
    slots_[at] = {x, round_};
    ++size_;
    return true;
  }

  bool contains(uint64_t x) const {
    if (slots_.empty()) return false;
    for (auto at = start(x); slots_[at].round == round_; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].value == x) return true;
    return false;
  }

  size_t memory_bytes() const { return slots_.capacity() * sizeof(slot); }

private:
  struct slot {
    uint64_t value = 0;
    uint32_t round = 0;
  };

  size_t start(uint64_t x) const { return mix(0, x) & (slots_.size() - 1); }
  void grow() {
    auto old = std::exchange(slots_, std::vector<slot>(slots_.empty() ? 64 : 2 * slots_.size()));
    const auto round = std::exchange(round_, 1);
    size_ = 0;
    for (const auto& x : old)
      if (x.round == round) insert(x.value);
  }

  std::vector<slot> slots_; ///< a power of two
  size_t size_ = 0;
  uint32_t round_ = 1; ///< of this filling: slots of other rounds are empty
};

} // namespace lamella::model
