// Arrays are built from their end, as objects are.
#include "model/grammar/json_schema/json_schema_compiler.hpp"

#include <algorithm>

namespace lamella::model {

using node_id = grammar::node_id;
using part = demand::part;

namespace {

constexpr size_t unique_values_max = 8;     ///< each set of them is a place
constexpr uint32_t counted_items_max = 256; ///< beside contains
constexpr size_t contained_max = 3;         ///< of them in one array
constexpr size_t item_counts_max = 4'096;   ///< ways of counts of items

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
  /// What some of the items must be.
  struct some {
    schema_place what;
    uint32_t min, max;
    /// Counts beyond it are alike.
    uint32_t last() const { return max == grammar::unbounded ? min : max; }
  };
  std::vector<some> contained;
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
    size_t others_from = 0; ///< and behind the first ones
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
    const bool unevaluated = std::string_view{keyword} == "unevaluatedItems";
    const auto evaluated = x.has(keyword) && unevaluated ? evaluated_items(x, views) : 0;
    if (x.has(keyword) && evaluated) {
      from.others = {{{x.find(keyword), x.below(keyword)}}};
      from.others_from = *evaluated;
    }
    if (const auto min = x.count("minItems"); min.value_or(0) > out.min) {
      out.min = *min;
      out.min_at = x.below("minItems");
    }
    out.max = std::min(out.max, x.count("maxItems").value_or(grammar::unbounded));
    if (const auto* unique = x.find("uniqueItems");
        unique != nullptr && *unique == json_value(true))
      out.unique = x.below("uniqueItems");
    if (!x.has("contains")) continue;
    const auto least = x.count("minContains").value_or(1);
    const auto greatest = x.count("maxContains").value_or(grammar::unbounded);
    if (least == 0 && greatest == grammar::unbounded) continue;
    out.contained.push_back({{x.find("contains"), x.below("contains")}, least, greatest});
    if (out.contained.size() > contained_max)
      x.fail("contains",
             "is only supported up to " + std::to_string(contained_max) + " times in one array");
  }
  size_t most = 0;
  for (const auto& from : sources)
    if (from.first != nullptr) most = std::max(most, from.first->size());
  out.first.resize(most);
  for (const auto& from : sources) {
    for (size_t i = 0; i < most; ++i)
      if (from.first != nullptr && i < from.first->size())
        out.first[i].push_back({{&(*from.first)[i], from.first_at + "/" + std::to_string(i)}});
      else if (i >= from.others_from)
        out.first[i].insert(out.first[i].end(), from.others.begin(), from.others.end());
    out.others.insert(out.others.end(), from.others.begin(), from.others.end());
  }
  return out;
}

/// The i-th item; one of the contained ones by the bits of `matched`, and none of the others of
/// which there must not be too many.
node_id json_schema_compiler::item(const array_items& all, size_t i, uint32_t matched,
                                   node_id next) {
  auto own = i < all.first.size() ? all.first[i] : all.others;
  for (size_t j = 0; j < all.contained.size(); ++j) {
    const auto& some = all.contained[j];
    if ((matched >> j & 1) != 0)
      own.push_back({some.what});
    else if (some.max != grammar::unbounded)
      own.push_back({some.what, part::refuted});
  }
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
  for (const auto& some : all.contained)
    if (some.max < some.min)
      return nothing(some.what, "must be in more items than maxContains allows");
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
    grammar_.begin(*one, item(all, all.first.size(), 0, grammar_.end()));
    const auto another = grammar_.rule();
    grammar_.begin(another, grammar_.text(",", json_.space(grammar_.call(*one, grammar_.end()))));
    behind =
        grammar_.repeat(another, rest_of(all.min, there), rest_of(all.max, there), spaced_close);
  }
  auto first = behind;
  for (size_t i = there; i-- > 0;) {
    first = i >= named && one ? grammar_.call(*one, behind) : item(all, i, 0, behind);
    const auto another = grammar_.text(",", json_.space(first));
    behind = i < all.min ? another : grammar_.maybe(another, spaced_close);
  }
  return grammar_.text("[", json_.space(all.min == 0 ? grammar_.maybe(first, close) : first));
}

/// Some items are contained: a node for each number of items before, and of those of each kind.
node_id json_schema_compiler::containing(const array_items& all, node_id next) {
  const bool endless = all.max == grammar::unbounded;
  const auto last = endless ? std::max<size_t>({all.min, all.first.size(), 1}) : all.max;
  size_t counts = 1;
  for (const auto& some : all.contained)
    counts *= std::min<size_t>(some.last(), item_counts_max) + 1;
  const auto kinds = uint32_t{1} << all.contained.size();
  if (last > counted_items_max || (last + 1) * counts * kinds > item_counts_max)
    throw json_schema_error(all.contained[0].what.pointer,
                            "is only supported beside up to " + std::to_string(counted_items_max)
                                + " items, and " + std::to_string(item_counts_max / kinds)
                                + " combinations of their number and of those that are counted");
  const auto close = grammar_.text("]", next), spaced_close = json_.space(close);
  std::vector<node_id> behind((last + 1) * counts);
  for (auto& x : behind) x = grammar_.choice();
  std::map<uint32_t, rule_id> others; // of all items without demands of their own
  const auto one = [&](size_t i, uint32_t matched, node_id to) {
    if (i < all.first.size()) return item(all, i, matched, to);
    const auto [known, is_new] = others.try_emplace(matched);
    if (is_new) {
      known->second = grammar_.rule();
      grammar_.begin(known->second, item(all, i, matched, grammar_.end()));
    }
    return grammar_.call(known->second, to);
  };
  /// The counts behind such an item; nothing: there cannot be one more, or it is not looked for.
  const auto counted = [&](size_t before, uint32_t matched) -> std::optional<size_t> {
    size_t after = 0, unit = 1;
    for (size_t j = 0; j < all.contained.size(); ++j) {
      const auto size = all.contained[j].last() + size_t{1};
      const auto count = before / unit % size + (matched >> j & 1);
      if (count == size) return {};
      after += count * unit;
      unit *= size;
    }
    return after;
  };
  const auto is_enough = [&](size_t of) {
    for (const auto& some : all.contained) {
      if (of % (some.last() + size_t{1}) < some.min) return false;
      of /= some.last() + size_t{1};
    }
    return true;
  };
  for (size_t i = 0; i <= last; ++i)
    for (size_t count = 0; count < counts; ++count) {
      const auto from = behind[i * counts + count];
      if (i >= all.min && is_enough(count)) grammar_.branch(from, {i == 0 ? close : spaced_close});
      if (i == last && !endless) continue;
      for (uint32_t matched = 0; matched < kinds; ++matched) {
        const auto to = counted(count, matched);
        if (!to) continue;
        const auto member = one(i, matched, behind[std::min(i + 1, last) * counts + *to]);
        grammar_.branch(from, {i == 0 ? member : grammar_.text(",", json_.space(member))});
      }
    }
  return grammar_.text("[", json_.space(behind[0]));
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
