#include "model/grammar/plain_reach.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace lamella::model {

namespace {

using state_id = grammar_states::state_id;

/// First bytes of plain characters, and how many bytes come behind each.
struct leads {
  int low, high, more;
};
constexpr leads all_leads[] = {{' ', '!', 0},   {'#', '[', 0},   {']', 0x7F, 0},  {0xC2, 0xDF, 1},
                               {0xE0, 0xE0, 2}, {0xE1, 0xEC, 2}, {0xED, 0xED, 2}, {0xEE, 0xEF, 2},
                               {0xF0, 0xF0, 3}, {0xF1, 0xF3, 3}, {0xF4, 0xF4, 3}};

/// Where the plain characters lead from a state, until it is known that some do and some do not.
class one_character {
public:
  explicit one_character(grammar_states& states) : states_{states} {}

  void run(state_id from) {
    if (const auto* classes = states_.classes_of(from)) {
      for (const auto c : classes->plain_ones())
        if (!go(from, c)) return;
      return;
    }
    for (const auto& x : all_leads)
      if (!go(from, true, x.low, x.high, x.more)) return;
  }

  bool any = false, all = true;
  std::vector<state_id> to;

private:
  /// The one character, and so all of its class.
  bool go(state_id from, char32_t c) {
    std::string bytes;
    append_utf8(bytes, c);
    for (const char byte : bytes)
      if (from != grammar_states::dead) from = states_.near_step(from, static_cast<uint8_t>(byte));
    (from == grammar_states::dead ? all : any) = from != grammar_states::dead;
    if (from != grammar_states::dead) add(to, from);
    return all || !any;
  }

  /// All bytes of a range, and so many more behind each. False: enough is known.
  bool go(state_id from, bool first, int low, int high, int more) {
    auto last = state_id{grammar_states::dead};
    for (auto b = low; b <= high; ++b) {
      const auto next = states_.near_step(from, static_cast<uint8_t>(b));
      if (next == std::exchange(last, next) && b > low) continue;
      (next == grammar_states::dead ? all : any) = next != grammar_states::dead;
      if (any && !all) return false;
      if (next == grammar_states::dead) continue;
      if (more == 0) {
        add(to, next);
        continue;
      }
      // The lead byte says which bytes may follow; behind them any may.
      const auto least = !first ? 0x80 : b == 0xE0 ? 0xA0 : b == 0xF0 ? 0x90 : 0x80;
      const auto most = !first ? 0xBF : b == 0xED ? 0x9F : b == 0xF4 ? 0x8F : 0xBF;
      const bool whole = least == 0x80 && most == 0xBF;
      if (whole && !add(followed_, std::pair{next, more})) continue;
      if (!go(next, false, least, most, more - 1)) return false;
    }
    return true;
  }

  /// False where it is there. There are few.
  template <class T> static bool add(std::vector<T>& known, const T& x) {
    if (std::find(known.begin(), known.end(), x) != known.end()) return false;
    known.push_back(x);
    return true;
  }

  grammar_states& states_;
  std::vector<std::pair<state_id, int>> followed_; ///< bytes behind them, any of 0x80 to 0xBF
};

} // namespace

plain_reach::result plain_reach::of(state_id x) {
  const auto known = known_.find(x);
  return known != known_.end() ? known->second : look(x);
}

plain_reach::step plain_reach::step_of(state_id x) {
  const auto [known, is_new] = steps_.try_emplace(x);
  if (is_new) {
    one_character found{states_};
    found.run(x);
    known->second = {found.any, found.all && found.any, static_cast<uint32_t>(targets_.size()), 0};
    if (known->second.all) {
      targets_.insert(targets_.end(), found.to.begin(), found.to.end());
      known->second.count = static_cast<uint32_t>(found.to.size());
    }
  }
  return known->second;
}

/// Nearest states first, until one is found that not every character may follow. No longer text is
/// allowed where all ways there are of one length, and no character may follow.
plain_reach::result plain_reach::look(state_id x) {
  std::vector<std::pair<state_id, uint32_t>> found{{x, 0}}; // and characters to it
  std::unordered_map<state_id, uint32_t> distance{{x, 0}};
  auto end = characters_max_;
  bool ends_alike = true, is_closed = true;
  size_t work = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto [at, far] = found[i];
    work += 1 + states_.places_of(at);
    if (work > work_max) return known_[x] = {std::min(far, end), false};
    if (far > end || far == characters_max_) {
      is_closed = false;
      break;
    }
    const auto one = step_of(at);
    if (!one.all) {
      end = far;
      ends_alike = ends_alike && !one.any;
    }
    for (auto t = one.first; t < one.first + one.count; ++t) {
      const auto [known, is_new] = distance.try_emplace(targets_[t], far + 1);
      if (is_new) found.emplace_back(targets_[t], far + 1);
      ends_alike = ends_alike && known->second == far + 1;
    }
  }
  if (end == characters_max_) {
    if (is_closed)
      for (const auto& [at, far] : found) known_[at] = {characters_max_, false};
    return known_[x] = {characters_max_, false};
  }
  if (ends_alike && found.back().second == end) // none goes on where others end
    for (const auto& [at, far] : found) known_[at] = {end - far, true};
  return known_.try_emplace(x, result{end, false}).first->second;
}

} // namespace lamella::model
