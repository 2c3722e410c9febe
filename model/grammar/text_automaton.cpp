#include "model/grammar/text_automaton.hpp"
#include "model/grammar/hash_index.hpp"
#include "model/grammar/words_hash.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace lamella::model {

namespace {

using node_id = grammar::node_id;

constexpr char32_t last_character = 0x10FFFF;

} // namespace

void text_automaton::bound(size_t states, size_t classes) {
  if (states > states_max)
    throw automaton_error("it has more than " + std::to_string(states_max) + " states");
  if (states * classes > edges_max)
    throw automaton_error("it has more than " + std::to_string(edges_max)
                          + " edges, for so many characters lead apart");
}

size_t text_automaton::class_of(char32_t c) const {
  return static_cast<size_t>(std::upper_bound(classes_.begin(), classes_.end(), c)
                             - classes_.begin())
         - 1;
}

text_automaton text_automaton::of_texts(const std::vector<std::string>& texts) {
  // A tree of the texts; state 1 is of texts that leave it.
  std::vector<std::map<char32_t, state>> tree(2);
  std::vector<mark> marks(2, 0);
  std::vector<char32_t> starts{0};
  for (const auto& text : texts) {
    state at = 0;
    for (size_t i = 0; i < text.size();) {
      const auto unit = decode_utf8(text, i);
      i += std::max<size_t>(unit.bytes, 1);
      starts.push_back(unit.code_point);
      if (unit.code_point < last_character) starts.push_back(unit.code_point + 1);
      const auto [below, is_new] =
          tree[at].emplace(unit.code_point, static_cast<state>(tree.size()));
      at = below->second;
      if (!is_new) continue;
      if (tree.size() >= states_max) throw automaton_error("it has too many characters");
      tree.emplace_back();
      marks.push_back(0);
    }
    marks[at] = 1;
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  bound(tree.size(), starts.size());
  text_automaton made;
  made.classes_ = std::move(starts);
  made.marks_ = std::move(marks);
  made.next_.assign(tree.size() * made.classes_.size(), 1);
  for (size_t s = 0; s < tree.size(); ++s)
    for (const auto& [c, below] : tree[s])
      made.next_[s * made.classes_.size() + made.class_of(c)] = below;
  made.work_ = made.work_of_edges();
  return made;
}

text_automaton text_automaton::of_length(uint32_t min, uint32_t max) {
  const bool endless = max == grammar::unbounded;
  const auto last = endless ? min : max; // the last state that tells lengths apart
  if (last + size_t{2} > states_max) throw automaton_error("it counts too many characters");
  text_automaton made;
  for (uint32_t length = 0; length <= last; ++length) {
    made.marks_.push_back(length >= min ? 1 : 0);
    made.next_.push_back(length == last && endless ? length : length + 1);
  }
  if (!endless) {
    made.marks_.push_back(0);
    made.next_.push_back(last + 1);
  }
  made.work_ = made.work_of_edges();
  return made;
}

text_automaton text_automaton::product(std::span<const text_automaton> all) {
  if (all.size() > marks_max) throw automaton_error("it has too many expressions at once");
  text_automaton made;
  for (const auto& x : all)
    made.classes_.insert(made.classes_.end(), x.classes_.begin(), x.classes_.end());
  std::sort(made.classes_.begin(), made.classes_.end());
  made.classes_.erase(std::unique(made.classes_.begin(), made.classes_.end()), made.classes_.end());
  const auto width = made.classes_.size();
  std::vector<std::vector<size_t>> class_in(all.size());
  for (size_t i = 0; i < all.size(); ++i)
    for (const auto c : made.classes_) class_in[i].push_back(all[i].class_of(c));
  std::unordered_map<std::vector<uint32_t>, state, words_hash> known;
  std::vector<std::vector<uint32_t>> tuples;
  const auto state_of = [&](const std::vector<uint32_t>& tuple) {
    const auto [at, is_new] = known.try_emplace(tuple, static_cast<state>(tuples.size()));
    if (is_new) {
      if (tuples.size() >= states_max || tuples.size() * width > edges_max)
        throw automaton_error("together it has more than " + std::to_string(states_max)
                              + " states");
      mark m = 0;
      for (size_t i = 0; i < all.size(); ++i)
        if (all[i].marks_[tuple[i]] != 0) m |= mark{1} << i;
      made.marks_.push_back(m);
      tuples.push_back(tuple);
    }
    return at->second;
  };
  std::vector<uint32_t> tuple(all.size(), 0), before;
  state_of(tuple);
  for (size_t s = 0; s < tuples.size(); ++s) {
    before.clear();
    for (size_t c = 0; c < width; ++c) { // most classes lead where the one before does
      for (size_t i = 0; i < all.size(); ++i)
        tuple[i] = all[i].next_[tuples[s][i] * all[i].classes_.size() + class_in[i][c]];
      made.next_.push_back(tuple == before ? made.next_.back() : state_of(tuple));
      before = tuple;
    }
  }
  made.work_ = made.work_of_edges() + made.edges() * all.size();
  return made;
}

text_automaton text_automaton::intersection(std::span<const text_automaton> all) {
  const auto every = all.size() >= marks_max ? ~mark{0} : (mark{1} << all.size()) - 1;
  return product(all).marked([every](mark m) { return m == every ? mark{1} : mark{0}; });
}

text_automaton text_automaton::complement() const {
  return marked([](mark m) { return m == 0 ? mark{1} : mark{0}; });
}

text_automaton text_automaton::marked(const std::function<mark(mark)>& as) const& {
  return text_automaton{*this}.marked(as);
}

text_automaton text_automaton::marked(const std::function<mark(mark)>& as) && {
  for (auto& m : marks_) m = as(m);
  return std::move(*this);
}

text_automaton::mark text_automaton::mark_of(std::string_view text) const {
  state at = 0;
  for (size_t i = 0; i < text.size();) {
    const auto unit = decode_utf8(text, i);
    i += std::max<size_t>(unit.bytes, 1);
    at = next_[at * classes_.size() + class_of(unit.code_point)];
  }
  return marks_[at];
}

/// From which states a text of the set can be finished.
std::vector<bool> text_automaton::useful() const {
  const auto width = classes_.size();
  const auto each_edge = [&](auto&& tell) {
    for (state s = 0; s < states(); ++s)
      for (size_t c = 0; c < width; ++c)
        if (const auto to = next_[s * width + c]; c == 0 || to != next_[s * width + c - 1])
          tell(to, s);
  };
  std::vector<size_t> first(states() + 1); // by state: where those begin that lead to it
  each_edge([&](state to, state) { ++first[to + 1]; });
  for (size_t s = 1; s < first.size(); ++s) first[s] += first[s - 1];
  std::vector<state> before(first.back());
  auto end = first;
  each_edge([&](state to, state from) { before[end[to]++] = from; });
  std::vector<bool> good(states(), false);
  std::vector<state> found;
  for (state s = 0; s < states(); ++s)
    if (marks_[s] != 0) {
      good[s] = true;
      found.push_back(s);
    }
  while (!found.empty()) {
    const auto x = found.back();
    found.pop_back();
    for (auto i = first[x]; i < first[x + 1]; ++i)
      if (const auto s = before[i]; !good[s]) {
        good[s] = true;
        found.push_back(s);
      }
  }
  return good;
}

bool text_automaton::empty() const { return !useful()[0]; }

std::vector<text_automaton::mark> text_automaton::marks() const {
  auto all = marks_; // every state is reached
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::optional<std::pair<uint32_t, uint32_t>> text_automaton::lengths() const {
  const auto good = useful();
  if (!good[0]) return {};
  const auto width = classes_.size();
  const auto each_next = [&](state s, auto&& tell) {
    for (size_t c = 0; c < width; ++c)
      if (const auto to = next_[s * width + c]; good[to]) tell(to);
  };
  // The nearest states first; and how many edges lead to each.
  std::vector<uint32_t> least(states(), grammar::unbounded), edges(states(), 0);
  std::vector<state> found{0};
  least[0] = 0;
  auto fewest = grammar::unbounded;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto s = found[i];
    if (marks_[s] != 0) fewest = std::min(fewest, least[s]);
    each_next(s, [&](state to) {
      ++edges[to];
      if (least[to] != grammar::unbounded) return;
      least[to] = least[s] + 1;
      found.push_back(to);
    });
  }
  // A state comes when all edges to it have: those on a way round never do.
  std::vector<uint32_t> most(states(), 0);
  std::vector<state> ready;
  if (edges[0] == 0) ready.push_back(0);
  uint32_t longest = 0;
  for (size_t i = 0; i < ready.size(); ++i) {
    const auto s = ready[i];
    if (marks_[s] != 0) longest = std::max(longest, most[s]);
    each_next(s, [&](state to) {
      most[to] = std::max(most[to], most[s] + 1);
      if (--edges[to] == 0) ready.push_back(to);
    });
  }
  return std::pair{fewest, ready.size() == found.size() ? longest : grammar::unbounded};
}

/// Classes that lead from every state to the same are one.
character_classes text_automaton::told_apart() const {
  const auto width = classes_.size();
  if (width > character_classes::ranges_max) return {};
  std::vector<uint64_t> hashes(width);
  for (state s = 0; s < states(); ++s)
    for (size_t c = 0; c < width; ++c) hashes[c] = mix(hashes[c], next_[s * width + c]);
  const auto alike = [&](size_t a, size_t b) {
    for (state s = 0; s < states(); ++s)
      if (next_[s * width + a] != next_[s * width + b]) return false;
    return true;
  };
  hash_index known; // of `firsts`
  std::vector<size_t> firsts;
  character_classes made;
  for (size_t c = 0; c < width; ++c) {
    auto of = known.find(hashes[c], [&](uint32_t x) { return alike(firsts[x], c); });
    if (of == hash_index::none) {
      of = static_cast<uint32_t>(firsts.size());
      known.add(hashes[c], of);
      firsts.push_back(c);
    }
    if (firsts.size() > character_classes::classes_max) return {};
    if (made.ranges.empty() || made.ranges.back().of != of)
      made.ranges.push_back({classes_[c], of});
  }
  return made;
}

node_id text_automaton::compile(grammar& g, spelling how,
                                const std::function<node_id(mark)>& behind) const {
  const auto good = useful();
  const auto width = classes_.size();
  std::map<mark, node_id> ends;
  std::vector<node_id> all_ends;
  for (state s = 0; s < states(); ++s)
    if (good[s] && marks_[s] != 0 && !ends.contains(marks_[s]))
      all_ends.push_back(ends[marks_[s]] = behind(marks_[s]));
  const auto made_before = g.nodes().size();
  std::vector<node_id> nodes(states());
  for (state s = 0; s < states(); ++s) nodes[s] = g.choice();
  std::map<std::vector<code_points::range>, grammar::rule_id> rules;
  const auto edge = [&](const code_points& set, node_id to) {
    const auto& ranges = set.ranges();
    if (ranges.back().second < 0x80 && ranges.front().first >= 0x20 && !set.contains('"')
        && !set.contains('\\'))
      return one_of(g, set, how, to);
    const auto [known, is_new] = rules.try_emplace(ranges);
    if (is_new) {
      known->second = g.rule();
      g.begin(known->second, one_of(g, set, how, g.end()));
    }
    return g.call(known->second, to);
  };
  for (state s = 0; s < states(); ++s) {
    if (!good[s]) continue;
    std::map<state, code_points> sets;
    for (size_t c = 0, begin = 0; c < width; ++c) {
      const auto to = next_[s * width + c];
      if (c + 1 < width && next_[s * width + c + 1] == to) continue;
      if (good[to])
        sets[to].add(classes_[begin], c + 1 < width ? classes_[c + 1] - 1 : last_character);
      begin = c + 1;
    }
    std::vector<node_id> branches;
    for (const auto& [to, set] : sets)
      if (!set.empty()) branches.push_back(edge(set, nodes[to]));
    if (marks_[s] != 0) branches.push_back(ends.at(marks_[s]));
    g.branch(nodes[s], std::move(branches));
  }
  if (how == spelling::json) g.tells_apart(made_before, told_apart(), all_ends);
  return nodes[0];
}

} // namespace lamella::model
