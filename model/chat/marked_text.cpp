#include "model/chat/marked_text.hpp"

#include <utility>
#include <vector>

namespace lamella::model {

namespace {

using node_id = grammar::node_id;

class marked_text {
public:
  marked_text(grammar& g, const std::string& mark, node_id behind, std::optional<node_id> end)
      : grammar_{g}, mark_{mark}, behind_{behind}, end_{end}, read_(mark.size()) {
    for (auto& node : read_) node = grammar_.choice();
    for (size_t i = 0; i < mark_.size(); ++i) grammar_.branch(read_[i], branches(i, {}));
  }

  node_id begin() const { return read_[0]; }

  /// The same, for texts that do not begin with `other`: along it, as far as the mark allows.
  node_id not_beginning_with(const std::string& other) {
    std::vector<size_t> known{0}; // of the mark, behind so many bytes of `other`
    for (size_t i = 0; i + 1 < other.size() && known.back() < mark_.size(); ++i)
      known.push_back(behind(known.back(), other[i]));
    if (known.back() == mark_.size()) known.pop_back(); // the mark is in it
    std::optional<node_id> next;
    for (auto i = known.size(); i-- > 0;) {
      const auto byte = static_cast<uint8_t>(other[i]);
      auto ways = branches(known[i], byte_set{}.set(byte));
      if (next)
        ways.push_back(grammar_.bytes(byte_set{}.set(byte), *next));
      else if (i + 1 < other.size())
        ways.push_back(grammar_.bytes(byte_set{}.set(byte), behind_));
      next = grammar_.choice(std::move(ways));
    }
    return *next;
  }

private:
  /// How much of the mark the text may have begun, behind one more byte.
  size_t behind(size_t known, char byte) const {
    for (auto i = known + 1; i-- > 0;)
      if (mark_[i] == byte && mark_.compare(known - i, i, mark_, 0, i) == 0) return i + 1;
    return 0;
  }

  /// From where `known` bytes of the mark are read, by all bytes but some.
  std::vector<node_id> branches(size_t known, const byte_set& without) {
    auto others = bytes_between(0, 255) & ~without;
    std::vector<node_id> result;
    if (end_) result.push_back(*end_);
    const auto go = [&](uint8_t byte, size_t then) {
      if (!others[byte]) return;
      others.reset(byte);
      result.push_back(
          grammar_.bytes(byte_set{}.set(byte), then == mark_.size() ? behind_ : read_[then]));
    };
    // Another byte may go on with a shorter beginning.
    for (size_t i = known + 1; i-- > 0;)
      if (const auto byte = mark_[i]; mark_.compare(known - i, i, mark_, 0, i) == 0)
        go(static_cast<uint8_t>(byte), i + 1);
    result.push_back(grammar_.bytes(others, read_[0]));
    return result;
  }

  grammar& grammar_;
  const std::string& mark_;
  node_id behind_;
  std::optional<node_id> end_;
  std::vector<node_id> read_; ///< by how much of the mark the end of the text may be
};

} // namespace

node_id text_up_to(grammar& g, const std::string& mark, node_id behind, std::optional<node_id> end,
                   const std::string& other) {
  marked_text text{g, mark, behind, end};
  return other.empty() ? text.begin() : text.not_beginning_with(other);
}

} // namespace lamella::model
