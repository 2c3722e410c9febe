// Looks for texts behind which terminals go on for ever.
#include "model/grammar/ambiguity.hpp"
#include "model/grammar/grammar_states.hpp"

#include <unordered_map>
#include <vector>

namespace lamella::model {

namespace {

using state_id = grammar_states::state_id;

/// The states that come first, and those from which an end is reached, or what was not looked at.
class endless_search {
public:
  endless_search(const std::shared_ptr<const runnable_grammar>& g, uint32_t reach)
      : states_{g, reach, grammar_states::steps::made_again} {}

  void run() {
    number_of(states_.start());
    for (; gone_on_ < found_.size() && states_.work() < endless_work_max; ++gone_on_) {
      const auto from = found_[gone_on_].state;
      for (const auto b : std::vector{states_.telling_bytes(from)})
        if (const auto to = states_.step(from, b); to != grammar_states::dead)
          found_[number_of(to)].from.push_back(gone_on_);
    }
    std::vector<uint32_t> ends;
    for (uint32_t i = 0; i < found_.size(); ++i)
      if (i >= gone_on_ || states_.accepts(found_[i].state)) ends.push_back(i);
    for (const auto x : ends) found_[x].ends = true;
    while (!ends.empty()) {
      const auto x = ends.back();
      ends.pop_back();
      for (const auto y : found_[x].from)
        if (!found_[y].ends) {
          found_[y].ends = true;
          ends.push_back(y);
        }
    }
  }

  bool has_text() const { return found_[0].ends; }

  /// Those from which no end is reached, as states of `to`. One that stands for others of the same
  /// next bytes alone: masks are made of such states.
  std::vector<state_id> endless(grammar_states& to) {
    std::vector<state_id> all;
    for (uint32_t i = 0; i < gone_on_; ++i)
      if (const auto x = found_[i].state; !found_[i].ends && states_.near(x) == x)
        all.push_back(to.import(states_, x));
    return all;
  }

private:
  struct place {
    state_id state;
    std::vector<uint32_t> from{}; ///< those that lead here
    bool ends = false;
  };

  uint32_t number_of(state_id x) {
    const auto [known, is_new] = numbers_.try_emplace(x, static_cast<uint32_t>(found_.size()));
    if (is_new) found_.push_back({x});
    return known->second;
  }

  grammar_states states_;
  std::vector<place> found_;
  uint32_t gone_on_ = 0; ///< so many of them were gone on from
  std::unordered_map<state_id, uint32_t> numbers_;
};

} // namespace

endless_states find_endless(const std::shared_ptr<const runnable_grammar>& g, uint32_t reach) {
  auto in = std::make_shared<grammar_states>(g, reach);
  std::vector<state_id> all;
  if (g->rules.has_terminals()) {
    endless_search first{g, reach};
    first.run();
    if (!first.has_text())
      throw grammar_error("no text of it ends: a terminal goes on with all that may come behind it;"
                          " let something stand between two terminals that the first one does not"
                          " take");
    all = first.endless(*in);
  }
  return {std::move(in), std::move(all)};
}

} // namespace lamella::model
