#include "model/grammar/text/nullable_rules.hpp"

namespace lamella::model {

namespace {

using kind = grammar_part::kind;

/// Parts wait for those in them, and references for their rules, until none are missing.
class finder {
public:
  finder(const std::vector<grammar_rule>& rules, const std::map<std::string, size_t>& number,
         const std::function<bool(const grammar_part&)>& has_empty)
      : number_{number}, has_empty_{has_empty}, waiting_(rules.size(), {0, 1}),
        references_(rules.size()) {
    for (size_t i = 0; i < rules.size(); ++i) add(rules[i].body, i);
  }

  nullable_rules find() {
    nullable_rules made;
    made.are.assign(references_.size(), false);
    while (!found_.empty()) {
      const auto at = found_.back();
      found_.pop_back();
      if (at >= references_.size()) {
        meet(waiting_[at].around);
        continue;
      }
      made.are[at] = true;
      for (const auto reference : references_[at]) meet(reference);
    }
    made.looked_at = looked_at_;
    return made;
  }

private:
  struct waiting {
    size_t around;  ///< the part that it is in, or the rule
    size_t missing; ///< how many others must be nullable yet
  };

  size_t missing_of(const grammar_part& x) const {
    switch (x.what) {
    case kind::text:
      return x.text.empty() ? 0 : 1;
    case kind::expression:
      return has_empty_(x) ? 0 : 1;
    case kind::sequence:
      return x.inner.size();
    case kind::repeat:
      return x.min == 0 ? 0 : 1;
    case kind::characters:
    case kind::choice:
    case kind::reference:
      break;
    }
    return 1;
  }

  void add(const grammar_part& x, size_t around) {
    ++looked_at_;
    const auto at = waiting_.size();
    waiting_.push_back({around, missing_of(x)});
    if (waiting_[at].missing == 0) found_.push_back(at);
    if (x.what == kind::reference) references_[number_.at(x.text)].push_back(at);
    for (const auto& inner : x.inner) add(inner, at);
  }

  /// One of those that it waits for is nullable.
  void meet(size_t at) {
    ++looked_at_;
    auto& missing = waiting_[at].missing;
    if (missing != 0 && --missing == 0) found_.push_back(at);
  }

  const std::map<std::string, size_t>& number_;
  const std::function<bool(const grammar_part&)>& has_empty_;
  std::vector<waiting> waiting_;                ///< the rules first, then their parts
  std::vector<std::vector<size_t>> references_; ///< to each rule
  std::vector<size_t> found_;                   ///< nullable ones that have not told it yet
  uint64_t looked_at_ = 0;
};

} // namespace

nullable_rules find_nullable(const std::vector<grammar_rule>& rules,
                             const std::map<std::string, size_t>& number,
                             const std::function<bool(const grammar_part&)>& has_empty) {
  return finder{rules, number, has_empty}.find();
}

} // namespace lamella::model
