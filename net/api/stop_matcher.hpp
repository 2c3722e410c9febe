/// Finds stop strings in text that arrives in pieces.
///
/// The text before a stop string may be sent, the stop string itself must not, and where it starts
/// is known only when it is complete. So text that could still become a stop string is held back.
/// An automaton over all stop strings (Aho and Corasick) tells in constant time per byte how long
/// the held part is; its state depends on the bytes alone, never on the pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// The match is the one that is complete first; of several that end at the same byte, the longest.
/// Memory: some 60 bytes per byte of stop strings; time: linear in the text.
class stop_matcher {
public:
  /// Empty strings are ignored.
  explicit stop_matcher(const std::vector<std::string>& stops);

  /// Adds text and returns what may be sent now. After a match: nothing more, ever. `ends`: whether
  /// stop strings that this text completes are matches; else they are text like any other, but may
  /// be the beginning of a longer one.
  std::string feed(std::string_view text, bool ends = true);

  /// The text is over: returns what was held back (empty after a match).
  std::string finish();

  /// Index of the stop string found, in the constructor's order.
  std::optional<size_t> matched() const { return matched_; }

  /// Bytes held back.
  size_t held() const { return held_.size(); }

private:
  struct node {
    std::vector<std::pair<char, uint32_t>> next; ///< sorted by byte
    uint32_t fail = 0;  ///< the longest proper suffix that is also a prefix of a stop string
    uint32_t depth = 0; ///< bytes of that prefix
    uint32_t match = 0; ///< 1 + index of the longest stop string that ends here; 0: none
  };
  uint32_t child(uint32_t from, char byte) const;
  uint32_t step(uint32_t from, char byte) const;

  std::vector<node> nodes_;
  std::vector<uint32_t> lengths_;
  uint32_t state_ = 0;
  std::string held_;
  std::optional<size_t> matched_;
};

} // namespace lamella::net
