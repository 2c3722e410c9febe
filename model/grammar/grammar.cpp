#include "model/grammar/grammar.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace lamella::model {

byte_set bytes_between(uint8_t low, uint8_t high) {
  if (low > high) return {};
  return byte_set{}.set() >> (255u - high + low) << low;
}

const byte_set& plain_bytes() {
  static const auto all = bytes_between(0x20, 0xFF) & ~byte_set{}.set('"').set('\\');
  return all;
}

grammar::grammar() {
  nodes_.emplace_back(); // end()
  rules_.push_back(end());
}

void grammar::refuse_more() {
  throw grammar_error("it is too large: more than " + std::to_string(nodes_max)
                      + " places in it; use fewer alternatives or smaller counts");
}

grammar::node_id grammar::add(node x) {
  if (nodes_.size() >= nodes_max) refuse_more();
  nodes_.push_back(std::move(x));
  return static_cast<node_id>(nodes_.size() - 1);
}

grammar::node_id grammar::fork(std::span<const way> ways) {
  if (ways.empty()) return choice();
  if (ways_.size() + ways.size() > ways_max) refuse_more();
  node x;
  x.what = kind::bytes;
  x.first_way = static_cast<uint32_t>(ways_.size());
  x.ways = static_cast<uint32_t>(ways.size());
  for (const auto& w : ways) x.set |= w.set;
  ways_.insert(ways_.end(), ways.begin(), ways.end());
  return add(std::move(x));
}

grammar::node_id grammar::text(std::string_view text, node_id next) {
  for (size_t i = text.size(); i-- > 0;)
    next = bytes(byte_set{}.set(static_cast<unsigned char>(text[i])), next);
  return next;
}

namespace {

/// Bytes that lead to the same node are one way.
std::vector<grammar::way> ways_to(const std::vector<std::pair<grammar::node_id, uint8_t>>& below) {
  std::vector<grammar::way> ways;
  for (const auto& [node, byte] : below) {
    if (ways.empty() || ways.back().next != node) ways.push_back({{}, node});
    ways.back().set.set(byte);
  }
  return ways;
}

} // namespace

/// A tree of the beginnings is made first, a parent before what is below it, and nodes of it from
/// its end, those with the same byte and the same behind them once.
grammar::node_id grammar::texts(std::vector<std::string> texts, node_id next) {
  struct branch {
    uint8_t byte = 0;
    size_t above = 0;
    bool ends = false;                                ///< a text does
    std::vector<std::pair<node_id, uint8_t>> below{}; ///< and the byte that leads there
  };
  if (texts.empty()) return choice();
  std::sort(texts.begin(), texts.end());
  std::vector<branch> tree(1);
  std::vector<size_t> path{0}; // to the last text
  std::string_view last;
  for (const std::string_view text : texts) {
    const auto differs = std::mismatch(last.begin(), last.end(), text.begin(), text.end()).first;
    path.resize(static_cast<size_t>(differs - last.begin()) + 1);
    for (auto i = path.size() - 1; i < text.size(); ++i) {
      if (tree.size() > nodes_max) refuse_more();
      tree.push_back({static_cast<uint8_t>(text[i]), path.back()});
      path.push_back(tree.size() - 1);
    }
    tree[path.back()].ends = true;
    last = text;
  }
  // By what comes behind each byte; and whether the text may end there.
  std::map<std::pair<std::vector<std::pair<node_id, uint8_t>>, bool>, node_id> known_forks;
  for (auto i = tree.size(); i-- > 0;) {
    auto& x = tree[i];
    auto here = next;
    if (!x.below.empty()) {
      std::sort(x.below.begin(), x.below.end());
      const auto [known, is_new] = known_forks.try_emplace({std::move(x.below), x.ends});
      if (is_new) {
        known->second = fork(ways_to(known->first.first));
        if (x.ends) known->second = maybe(known->second, next);
      }
      here = known->second;
    }
    if (i == 0) return here;
    tree[x.above].below.emplace_back(here, x.byte);
  }
  return next;
}

grammar::node_id grammar::choice(std::vector<node_id> branches) {
  node x;
  x.what = kind::choice;
  x.branches = std::move(branches);
  return add(std::move(x));
}

void grammar::branch(node_id choice, std::vector<node_id> branches) {
  auto& all = nodes_[choice].branches;
  all.insert(all.end(), branches.begin(), branches.end());
}

grammar::rule_id grammar::rule() {
  rules_.push_back(end());
  return static_cast<rule_id>(rules_.size() - 1);
}

grammar::node_id grammar::call(rule_id rule, node_id next) {
  node x;
  x.what = kind::call;
  x.rule = rule;
  x.next = next;
  return add(std::move(x));
}

grammar::node_id grammar::repeat(rule_id rule, uint32_t min, uint32_t max, node_id next) {
  if (max == 0) return next;
  node x;
  x.what = kind::repeat;
  x.rule = rule;
  x.min = min;
  x.max = max;
  x.next = next;
  return add(std::move(x));
}

grammar::node_id grammar::terminal_end(uint32_t rank, node_id next) {
  node x;
  x.what = kind::terminal_end;
  x.rank = rank;
  x.next = next;
  return add(std::move(x));
}

void grammar::are_terminals(size_t nodes) {
  has_terminals_ = true;
  for (; nodes < nodes_.size(); ++nodes)
    nodes_[nodes].in_terminal = nodes_[nodes].what == kind::bytes;
}

void grammar::are_escapes(size_t nodes) {
  for (; nodes < nodes_.size(); ++nodes) nodes_[nodes].in_escape = true;
}

void grammar::tells_apart(size_t nodes, character_classes classes,
                          std::span<const node_id> behind) {
  const auto takes_plain = [&](node_id x) {
    return nodes_[x].what != kind::bytes || (nodes_[x].set & plain_bytes()).any();
  };
  if (classes.ranges.empty() || std::any_of(behind.begin(), behind.end(), takes_plain)) return;
  parts_.push_back(
      {static_cast<node_id>(nodes), static_cast<node_id>(nodes_.size()), std::move(classes)});
}

const character_classes* grammar::classes_at(node_id x) const {
  if (nodes_[x].in_escape) return nullptr;
  const auto after = std::upper_bound(parts_.begin(), parts_.end(), x,
                                      [](node_id at, const part& p) { return at < p.first; });
  if (after == parts_.begin() || (after - 1)->behind <= x) return nullptr;
  return &(after - 1)->classes;
}

namespace {

using kind = grammar::kind;

/// Which nodes may become productive when a node does: those that go on there, call the rule that
/// begins there, or have it as a branch.
class users {
public:
  explicit users(const grammar& g) : first_(g.nodes().size() + 1) {
    const auto each = [&](auto&& tell) {
      for (grammar::node_id i = 0; i < g.nodes().size(); ++i) {
        const auto& x = g.nodes()[i];
        if (x.what == kind::end) continue;
        if (x.what == kind::call || x.what == kind::repeat) tell(g.first_of(x.rule), i);
        if (x.what == kind::call || x.what == kind::repeat || x.what == kind::terminal_end)
          tell(x.next, i);
        for (const auto& w : g.ways(x)) tell(w.next, i);
        for (const auto b : x.branches) tell(b, i);
      }
    };
    each([&](auto of, auto) { ++first_[of + 1]; });
    for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    users_.resize(first_.back());
    auto at = first_;
    each([&](auto of, auto user) { users_[at[of]++] = user; });
  }

  std::span<const grammar::node_id> of(grammar::node_id x) const {
    return {users_.data() + first_[x], users_.data() + first_[x + 1]};
  }

private:
  std::vector<size_t> first_; ///< by node: where its users begin
  std::vector<grammar::node_id> users_;
};

} // namespace

std::vector<bool> productive_nodes(const grammar& g, const byte_set& available) {
  const auto& nodes = g.nodes();
  std::vector<bool> good(nodes.size(), false);
  const auto reaches_end = [&](const grammar::node& x) {
    switch (x.what) {
    case kind::end:
      return true;
    case kind::choice:
      return std::any_of(x.branches.begin(), x.branches.end(), [&](auto b) { return good[b]; });
    case kind::bytes:
      return std::any_of(g.ways(x).begin(), g.ways(x).end(), [&](const grammar::way& w) {
        return good[w.next] && (w.set & available).any();
      });
    case kind::call:
      return good[x.next] && good[g.first_of(x.rule)];
    case kind::repeat:
      return good[x.next] && (x.min == 0 || good[g.first_of(x.rule)]);
    case kind::terminal_end:
      return bool{good[x.next]};
    }
    return false;
  };
  // Nodes are made behind what they lead to, so few sweeps through those that are left find most of
  // them, and the last one that there is nothing more. Loops within loops may take many: users are
  // listed for those.
  constexpr size_t sweeps_max = 6; // of all nodes together
  std::vector<grammar::node_id> left;
  for (grammar::node_id i = 0; i < nodes.size(); ++i)
    if (nodes[i].what != kind::bytes || (nodes[i].set & available).any()) left.push_back(i);
  for (size_t looks = 0; looks < sweeps_max * nodes.size();) {
    const auto before = left.size();
    looks += before;
    std::erase_if(left, [&](auto i) { return good[i] = reaches_end(nodes[i]); });
    if (left.size() == before) return good;
  }
  const users by_node{g};
  std::vector<grammar::node_id> found;
  for (grammar::node_id i = 0; i < nodes.size(); ++i)
    if (good[i]) found.push_back(i);
  while (!found.empty()) {
    const auto x = found.back();
    found.pop_back();
    for (const auto user : by_node.of(x))
      if (!good[user] && reaches_end(nodes[user])) {
        good[user] = true;
        found.push_back(user);
      }
  }
  return good;
}

} // namespace lamella::model
