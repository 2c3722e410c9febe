// Arrays are built from their end, as objects are.
#include "model/grammar/json_schema/json_schema_compiler.hpp"

#include <algorithm>

namespace lamella::model {

using node_id = grammar::node_id;
using part = demand::part;

namespace {

constexpr size_t unique_values_max = 8;     ///< each set of them is a place
constexpr uint32_t counted_items_max = 256; ///< beside contains

/// What is left of a count of items when some are there.
uint32_t rest_of(uint32_t count, size_t there) {
  if (count == grammar::unbounded) return count;
  return count > there ? count - static_cast<uint32_t>(there) : 0;
}

} // namespace

/// What schemas together say about an array.
struct json_schema_compiler::array_items {
  std::vector<demands> first; ///< of items that have demands of their own
  demands others;
  uint32_t min = 0, max = grammar::unbounded;
  demands contained;  ///< of one item at least; none: nothing is asked for
  std::string unique; ///< where it is said
  std::string min_at;
};

json_schema_compiler::array_items
json_schema_compiler::items_of(const std::vector<schema_view>& views) {
  array_items out;
  struct source {
    const json_value::array* first = nullptr;
    std::string first_at;
    demands others;
  };
  std::vector<source> sources;
  for (const auto& x : views) {
    auto& from = sources.emplace_back();
    const auto* items = x.find("items");
    const bool is_list = items != nullptr && items->get_if<json_value::array>() != nullptr;
    if (x.has("prefixItems") && !is_list) {
      from.first = x.array("prefixItems");
      from.first_at = x.below("prefixItems");
    } else if (is_list) {
      from.first = items->get_if<json_value::array>();
      from.first_at = x.below("items");
    }
    const auto* keyword = !is_list && items != nullptr          ? "items"
                          : is_list && x.has("additionalItems") ? "additionalItems"
                                                                : "unevaluatedItems";
    if (x.has(keyword)) from.others = {{{x.find(keyword), x.below(keyword)}}};
    if (const auto min = x.count("minItems"); min.value_or(0) > out.min) {
      out.min = *min;
      out.min_at = x.below("minItems");
    }
    out.max = std::min(out.max, x.count("maxItems").value_or(grammar::unbounded));
    if (const auto* unique = x.find("uniqueItems");
        unique != nullptr && *unique == json_value(true))
      out.unique = x.below("uniqueItems");
    if (x.has("contains") && x.count("minContains") != 0u) {
      if (!out.contained.empty() || x.count("minContains").value_or(1) > 1)
        x.fail("contains", "is only supported once in an array, and with a minContains of up to 1");
      out.contained = {{{x.find("contains"), x.below("contains")}}};
    }
    if (x.has("contains") && x.has("maxContains")) x.fail("maxContains", "is not supported");
  }
  size_t most = 0;
  for (const auto& from : sources)
    if (from.first != nullptr) most = std::max(most, from.first->size());
  out.first.resize(most);
  for (const auto& from : sources) {
    for (size_t i = 0; i < most; ++i)
      if (from.first != nullptr && i < from.first->size())
        out.first[i].push_back({{&(*from.first)[i], from.first_at + "/" + std::to_string(i)}});
      else
        out.first[i].insert(out.first[i].end(), from.others.begin(), from.others.end());
    out.others.insert(out.others.end(), from.others.begin(), from.others.end());
  }
  return out;
}

/// The i-th item; a matched one is contained as well.
node_id json_schema_compiler::item(const array_items& all, size_t i, bool matched, node_id next) {
  auto own = i < all.first.size() ? all.first[i] : all.others;
  if (matched) own.insert(own.end(), all.contained.begin(), all.contained.end());
  return value(own, next);
}

node_id json_schema_compiler::array(const std::vector<schema_view>& views, node_id next) {
  auto all = items_of(views);
  for (size_t i = 0; i <= all.first.size(); ++i) {
    const auto lists = flat(i < all.first.size() ? all.first[i] : all.others);
    if (lists.impossible.schema == nullptr) continue;
    if (all.min > i)
      return nothing({nullptr, all.min_at},
                     "is above the number of items that " + lists.impossible.pointer + " allows");
    all.max = std::min(all.max, static_cast<uint32_t>(i));
    break;
  }
  if (all.max < all.min) return nothing({nullptr, all.min_at}, "is above maxItems");
  if (!all.unique.empty() && all.max > 1) return unique_items(all, next);
  if (all.contained.empty()) return items(all, next);
  return containing(all, next);
}

node_id json_schema_compiler::items(const array_items& all, node_id next) {
  const auto close = grammar_.text("]", next), spaced_close = json_.space(close);
  if (all.max == 0) return grammar_.text("[", json_.space(close));
  // The first item and the others have one rule, not two copies of what may be large.
  const auto named = std::min<size_t>(all.first.size(), all.max);
  const auto there = std::max<size_t>(named, 1);
  auto behind = spaced_close;
  std::optional<rule_id> one;
  if (rest_of(all.max, there) > 0) {
    one = grammar_.rule();
    grammar_.begin(*one, item(all, all.first.size(), false, grammar_.end()));
    const auto another = grammar_.rule();
    grammar_.begin(another, grammar_.text(",", json_.space(grammar_.call(*one, grammar_.end()))));
    behind =
        grammar_.repeat(another, rest_of(all.min, there), rest_of(all.max, there), spaced_close);
  }
  auto first = behind;
  for (size_t i = there; i-- > 0;) {
    first = i >= named && one ? grammar_.call(*one, behind) : item(all, i, false, behind);
    const auto another = grammar_.text(",", json_.space(first));
    behind = i < all.min ? another : grammar_.maybe(another, spaced_close);
  }
  return grammar_.text("[", json_.space(all.min == 0 ? grammar_.maybe(first, close) : first));
}

/// One item at least is contained: a node for each number of items before, with and without it.
node_id json_schema_compiler::containing(const array_items& all, node_id next) {
  const bool endless = all.max == grammar::unbounded;
  const auto last = endless ? std::max<size_t>({all.min, all.first.size(), 1}) : all.max;
  if (last > counted_items_max)
    throw json_schema_error(all.contained[0].place.pointer, "is only supported beside up to "
                                                                + std::to_string(counted_items_max)
                                                                + " items");
  const auto close = grammar_.text("]", next), spaced_close = json_.space(close);
  struct pair {
    node_id open, found;
  };
  std::vector<pair> behind(last + 1);
  for (auto& x : behind) x = {grammar_.choice(), grammar_.choice()};
  std::map<std::pair<bool, bool>, rule_id> others; // of all items without demands of their own
  const auto one = [&](size_t i, bool matched, node_id to) {
    if (i < all.first.size()) return item(all, i, matched, to);
    const auto [known, is_new] = others.try_emplace({matched, true});
    if (is_new) {
      known->second = grammar_.rule();
      grammar_.begin(known->second, item(all, i, matched, grammar_.end()));
    }
    return grammar_.call(known->second, to);
  };
  for (size_t i = 0; i <= last; ++i) {
    if (i >= all.min) grammar_.branch(behind[i].found, {i == 0 ? close : spaced_close});
    if (i == last && !endless) continue;
    const auto& to = behind[std::min(i + 1, last)];
    const auto add = [&](node_id from, node_id member) {
      grammar_.branch(from, {i == 0 ? member : grammar_.text(",", json_.space(member))});
    };
    add(behind[i].open, one(i, false, to.open));
    add(behind[i].open, one(i, true, to.found));
    add(behind[i].found, one(i, false, to.found));
  }
  return grammar_.text("[", json_.space(behind[0].open));
}

/// The values of which one must be, where they are enumerated.
std::optional<std::vector<const json_value*>> json_schema_compiler::values_of(const demands& all) {
  std::optional<std::vector<const json_value*>> values;
  for (const auto& x : flat(all).all) {
    if (x.what != part::own || values) continue;
    const auto* list = x.place.schema->find("enum");
    const auto* items = list != nullptr ? list->get_if<json_value::array>() : nullptr;
    if (const auto* one = x.place.schema->find("const"))
      values = {one};
    else if (items != nullptr)
      for (const auto& value : *items) {
        if (!values) values.emplace();
        values->push_back(&value);
      }
  }
  if (values)
    std::erase_if(*values, [&](const auto* value) { return holds(*value, all) != verdict::yes; });
  return values;
}

/// In any order, each value once at most: a node for each set of values before.
node_id json_schema_compiler::unique_items(const array_items& all, node_id next) {
  const auto values = all.first.empty() && all.contained.empty() && !all.others.empty()
                          ? values_of(all.others)
                          : std::nullopt;
  if (!values || values->size() > unique_values_max)
    throw json_schema_error(all.unique, "is only supported for up to "
                                            + std::to_string(unique_values_max)
                                            + " enumerated values, or one item");
  std::vector<const json_value*> different;
  std::unordered_set<std::string> keys;
  for (const auto* value : *values)
    if (keys.insert(value_key(*value, number_reading::as_doubles)).second)
      different.push_back(value);
  const auto close = grammar_.text("]", next), spaced_close = json_.space(close);
  std::vector<rule_id> rules;
  for (const auto* value : different) {
    rules.push_back(grammar_.rule());
    grammar_.begin(rules.back(), json_.literal(*value, grammar_.end()));
  }
  std::vector<node_id> behind(size_t{1} << different.size());
  for (size_t set = behind.size(); set-- > 0;) {
    std::vector<node_id> ways;
    const auto count = static_cast<uint32_t>(std::bitset<32>(set).count());
    if (count >= all.min && count <= all.max) ways.push_back(set == 0 ? close : spaced_close);
    for (size_t i = 0; i < different.size() && count < all.max; ++i) {
      if ((set >> i & 1) != 0) continue;
      const auto one = grammar_.call(rules[i], behind[set | size_t{1} << i]);
      ways.push_back(set == 0 ? one : grammar_.text(",", json_.space(one)));
    }
    behind[set] = grammar_.choice(std::move(ways));
  }
  return grammar_.text("[", json_.space(behind[0]));
}

} // namespace lamella::model
