#include "model/grammar/grammar.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace lamella::model {

byte_set bytes_between(uint8_t low, uint8_t high) {
  byte_set set;
  for (unsigned b = low; b <= high; ++b) set.set(b);
  return set;
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

grammar::node_id grammar::bytes(const byte_set& set, node_id next) {
  node x;
  x.what = kind::bytes;
  x.set = set;
  x.next = next;
  return add(std::move(x));
}

grammar::node_id grammar::text(std::string_view text, node_id next) {
  for (size_t i = text.size(); i-- > 0;)
    next = bytes(byte_set{}.set(static_cast<unsigned char>(text[i])), next);
  return next;
}

/// A tree of the beginnings is made first, a parent before what is below it, and nodes of it from
/// its end, those with the same byte and the same behind them once.
grammar::node_id grammar::texts(std::vector<std::string> texts, node_id next) {
  struct branch {
    uint8_t byte = 0;
    size_t above = 0;
    std::vector<node_id> behind;
  };
  std::sort(texts.begin(), texts.end());
  std::vector<branch> tree(1);
  std::vector<size_t> way{0}; // to the last text
  std::string_view last;
  for (const std::string_view text : texts) {
    const auto differs = std::mismatch(last.begin(), last.end(), text.begin(), text.end()).first;
    way.resize(static_cast<size_t>(differs - last.begin()) + 1);
    for (auto i = way.size() - 1; i < text.size(); ++i) {
      if (tree.size() > nodes_max) refuse_more();
      tree.push_back({static_cast<uint8_t>(text[i]), way.back(), {}});
      way.push_back(tree.size() - 1);
    }
    auto& behind = tree[way.back()].behind;
    if (behind.empty()) behind.push_back(next);
    last = text;
  }
  std::map<std::pair<uint8_t, node_id>, node_id> bytes_of;
  std::map<std::vector<node_id>, node_id> choice_of;
  for (auto i = tree.size(); i-- > 0;) {
    auto& x = tree[i];
    auto behind = x.behind.size() == 1 ? x.behind[0] : node_id{};
    if (x.behind.size() != 1) {
      const auto [known, is_new] = choice_of.try_emplace(x.behind);
      if (is_new) known->second = choice(std::move(x.behind));
      behind = known->second;
    }
    if (i == 0) return behind;
    const auto [known, is_new] = bytes_of.try_emplace({x.byte, behind});
    if (is_new) known->second = bytes(byte_set{}.set(x.byte), behind);
    tree[x.above].behind.push_back(known->second);
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
        if (x.what != kind::choice) tell(x.next, i);
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
  /// For a node of which something has become good.
  const auto reaches_end = [&](const grammar::node& x) {
    switch (x.what) {
    case kind::end:
    case kind::choice:
      return true;
    case kind::bytes:
      return (x.set & available).any();
    case kind::call:
      return good[x.next] && good[g.first_of(x.rule)];
    case kind::repeat:
      return good[x.next] && (x.min == 0 || good[g.first_of(x.rule)]);
    }
    return false;
  };
  const users by_node{g};
  good[g.end()] = true;
  std::vector<grammar::node_id> found{g.end()};
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
