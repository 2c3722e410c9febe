#include "model/grammar/beginning.hpp"

#include <map>

namespace lamella::model {

namespace {

using kind = grammar::kind;
using node_id = grammar::node_id;
using rule_id = grammar::rule_id;

/// Copies what can come first: every node that is reached without a byte becomes a choice.
class beginnings {
public:
  beginnings(grammar& g, uint8_t byte) : grammar_{g}, byte_{byte}, first_{byte_set{}.set(byte)} {}

  std::optional<node_id> of(node_id from) {
    const auto result = copy_of(from);
    while (!open_.empty()) {
      const auto [node, copy] = open_.back();
      open_.pop_back();
      fill(copy, grammar::node{grammar_.nodes()[node]});
    }
    if (!found_) return {};
    return result;
  }

private:
  node_id copy_of(node_id node) {
    const auto [at, is_new] = copies_.try_emplace(node);
    if (is_new) {
      at->second = grammar_.choice();
      open_.emplace_back(node, at->second);
    }
    return at->second;
  }

  rule_id copy_of_rule(rule_id rule) {
    const auto [at, is_new] = rules_.try_emplace(rule);
    if (is_new) {
      at->second = grammar_.rule();
      grammar_.begin(at->second, copy_of(grammar_.first_of(rule)));
    }
    return at->second;
  }

  void fill(node_id copy, const grammar::node& x) {
    switch (x.what) {
    case kind::end:
      return;
    case kind::bytes:
      if ((x.set & first_).none()) return;
      found_ = true;
      grammar_.branch(copy, {grammar_.bytes(first_, grammar_.way_of(x, byte_).next)});
      return;
    case kind::choice:
      for (const auto branch : x.branches) grammar_.branch(copy, {copy_of(branch)});
      return;
    case kind::terminal_end:
      grammar_.branch(copy, {copy_of(x.next)});
      return;
    case kind::call:
      grammar_.branch(copy, {grammar_.call(copy_of_rule(x.rule), x.next)});
      return;
    case kind::repeat: {
      const auto fewer = [](uint32_t n) { return n == 0 || n == grammar::unbounded ? n : n - 1; };
      const auto rest = grammar_.repeat(x.rule, fewer(x.min), fewer(x.max), x.next);
      grammar_.branch(copy, {grammar_.call(copy_of_rule(x.rule), rest)});
      if (x.min == 0) grammar_.branch(copy, {copy_of(x.next)});
      return;
    }
    }
  }

  grammar& grammar_;
  uint8_t byte_;
  byte_set first_; ///< this byte alone
  std::map<node_id, node_id> copies_;
  std::map<rule_id, rule_id> rules_;
  std::vector<std::pair<node_id, node_id>> open_; ///< nodes and their copies, still empty
  bool found_ = false;
};

} // namespace

std::optional<node_id> beginning_with(grammar& g, node_id from, uint8_t byte) {
  return beginnings{g, byte}.of(from);
}

} // namespace lamella::model
