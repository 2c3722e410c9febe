#include "model/grammar/grammar.hpp"

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

grammar::node_id grammar::add(node x) {
  if (nodes_.size() >= nodes_max)
    throw grammar_error("it is too large: more than " + std::to_string(nodes_max)
                        + " places in it; use fewer alternatives or smaller counts");
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

std::vector<bool> productive_nodes(const grammar& g, const byte_set& available) {
  using kind = grammar::kind;
  const auto& nodes = g.nodes();
  std::vector<bool> good(nodes.size(), false);
  const auto reaches_end = [&](const grammar::node& x) {
    switch (x.what) {
    case kind::end:
      return true;
    case kind::bytes:
      return good[x.next] && (x.set & available).any();
    case kind::choice:
      for (const auto b : x.branches)
        if (good[b]) return true;
      return false;
    case kind::call:
      return good[x.next] && good[g.first_of(x.rule)];
    case kind::repeat:
      return good[x.next] && (x.min == 0 || good[g.first_of(x.rule)]);
    }
    return false;
  };
  // Nodes are made behind those that follow them, so one round finds nearly all.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (!good[i] && reaches_end(nodes[i])) good[i] = changed = true;
  }
  return good;
}

} // namespace lamella::model
