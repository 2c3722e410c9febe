#include "model/grammar/ambiguity.hpp"

#include "base/json_writer.hpp"
#include "model/grammar/grammar_states.hpp"

#include <algorithm>
#include <deque>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

namespace lamella::model {

namespace {

using state_id = grammar_states::state_id;

class ambiguity_search {
public:
  ambiguity_search(std::shared_ptr<const runnable_grammar> g, size_t work_max)
      : states_{std::move(g), reach, grammar_states::steps::made_again}, work_max_{work_max} {}

  void run() {
    come_to(states_.start(), {0, 0, true});
    for (bool nearest = false;
         work_ < enough() && has_time() && !(most_first_.empty() && first_.empty());
         nearest = !nearest) {
      const auto at = next(nearest);
      if (!std::exchange(found_[at].gone_on, true)) go_on(at);
    }
  }

  uint64_t states_work() const { return states_.work(); }

private:
  static constexpr uint32_t reach = 4;     ///< bytes within which a limit of a count is near
  static constexpr size_t step_work = 8;   ///< beside its places
  static constexpr size_t loop_bytes = 64; ///< of a way that is walked again and again
  static constexpr size_t loops_work_max = 2'000'000; ///< for all of them
  static constexpr uint32_t steady_times = 64;        ///< with the same growth: it goes on

  /// How a state was come to.
  struct origin {
    uint32_t before; ///< of found_
    uint8_t byte;
    bool leap; ///< not by one byte
  };
  struct place {
    state_id state;
    uint64_t nodes; ///< a hash of them
    origin way;
    bool gone_on = false;
  };

  /// More work than this is not worth it: three times as much as until the last state was found
  /// that has more places at one node than all before.
  size_t enough() const {
    return std::min(work_max_, std::max(2 * work_max_ / 5, 3 * most_alike_found_));
  }
  bool has_time() const { return states_work() < ambiguity_states_work_max; }

  uint32_t next(bool nearest) {
    uint32_t at;
    if (most_first_.empty() || (nearest && !first_.empty())) {
      at = first_.front();
      first_.pop_front();
    } else {
      at = std::get<2>(most_first_.top());
      most_first_.pop();
    }
    return at;
  }

  state_id step(state_id at, uint8_t byte) {
    work_ += step_work + states_.places_of(at);
    return states_.step(at, byte);
  }

  void go_on(uint32_t at) {
    const auto state = found_[at].state;
    for (const auto b : states_.telling_bytes(state))
      if (has_time()) come_to(step(state, b), {at, b, false});
    for (const auto x : states_.past_counts(state, passed_)) come_to(x, {at, 0, true});
  }

  void come_to(state_id x, origin way) {
    if (x == grammar_states::dead) return;
    if (states_.is_narrowed(x)) refuse(way);
    if (come_to_.size() <= x) come_to_.resize(2 * size_t{x} + 64);
    if (std::exchange(come_to_[x], char{1}) != 0) return; // most_ has it
    const auto places = states_.places_of(x);
    const auto [most, fresh] = most_.try_emplace(states_.innermost_of(x), places);
    if (!fresh && places <= most) return;
    most = places;
    const auto nodes = states_.nodes_of(x);
    const auto at = static_cast<uint32_t>(found_.size());
    found_.push_back({x, nodes, way});
    const auto alike = states_.most_alike(x);
    if (alike > most_alike_) {
      most_alike_ = alike;
      most_alike_found_ = work_;
    }
    most_first_.emplace(alike, places, at);
    first_.push_back(at);
    const auto [there, first] = most_at_nodes_.try_emplace(nodes, places);
    if (first || places <= there) return;
    there = places;
    walk_again(at);
  }

  /// The bytes from a state at the same nodes that has fewer places; none where there is none.
  std::vector<uint8_t> loop_to(uint32_t at) {
    std::vector<uint8_t> bytes;
    for (auto x = at; bytes.size() < loop_bytes && !found_[x].way.leap;) {
      bytes.push_back(found_[x].way.byte);
      x = found_[x].way.before;
      if (found_[x].nodes == found_[at].nodes) {
        std::reverse(bytes.begin(), bytes.end());
        return bytes;
      }
    }
    return {};
  }

  void walk_again(uint32_t from) {
    const auto loop = loop_to(from);
    if (loop.empty()) return;
    const auto begun = work_;
    auto at = found_[from].state;
    size_t growth = 0;
    uint32_t steady = 0;
    while (work_ - begun + loops_work_ < loops_work_max && has_time()) {
      auto next = at;
      for (const auto b : loop) {
        next = step(next, b);
        if (states_.is_narrowed(next)) refuse({from, b, true});
      }
      const auto before = states_.places_of(at), now = states_.places_of(next);
      if (now <= before) break;
      steady = now - before == growth ? steady + 1 : 0;
      growth = now - before;
      if (steady == steady_times) {
        steady = 0;
        const auto left = states_.times_left(next, at);
        const bool goes_on = left != grammar::unbounded; // until a count ends it
        if (goes_on && now + growth * (left / loop.size()) > runnable_grammar::places_max)
          refuse({from, loop.back(), true});
      }
      at = next;
    }
    loops_work_ += std::exchange(work_, begun) - begun;
    const auto raise = [places = uint64_t{states_.places_of(at)}](auto&& most) {
      most.first = std::max(most.first, places);
    };
    raise(most_.try_emplace(states_.innermost_of(at), 0));
    raise(most_at_nodes_.try_emplace(found_[from].nodes, 0));
    found_[from].state = at;
    found_[from].way.leap = true;
  }

  [[noreturn]] void refuse(origin way) const {
    constexpr size_t shown = 40;
    std::string text;
    for (;;) {
      const bool leap = way.leap || text.size() == shown;
      if (!leap)
        text += static_cast<char>(way.byte);
      else if (!text.ends_with("..."))
        text += "...";
      if (text.size() > shown || way.before == 0) break;
      way = found_[way.before].way;
    }
    std::reverse(text.begin(), text.end());
    throw grammar_error("it is too ambiguous: after an output such as " + to_json(json_value{text})
                        + " more than " + std::to_string(runnable_grammar::places_max)
                        + " positions in the format are possible; give repeated parts a distinct"
                          " beginning, use smaller counts, or start alternatives with the member or"
                          " text that distinguishes them");
  }

  grammar_states states_;
  const size_t work_max_;
  size_t most_alike_ = 0, most_alike_found_ = 0; ///< of all states; at which work
  size_t work_ = 0, loops_work_ = 0;             ///< the second: of ways that are walked again
  std::vector<char> come_to_;                    ///< by state
  std::vector<place> found_;
  /// Places at one node, places, and of found_.
  std::priority_queue<std::tuple<size_t, size_t, uint32_t>> most_first_;
  std::deque<uint32_t> first_;    ///< of found_
  numbers_by_hash most_;          ///< places, by innermost_of()
  numbers_by_hash most_at_nodes_; ///< places
  visit_set passed_;
};

} // namespace

uint64_t refuse_ambiguous(std::shared_ptr<const runnable_grammar> g, size_t work_max) {
  ambiguity_search all{std::move(g), work_max};
  all.run();
  return all.states_work();
}

} // namespace lamella::model
