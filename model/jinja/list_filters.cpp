#include "model/jinja/list_filters.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::model::jinja {
namespace {

/// The member a dotted path names, such as `function.name`; numbers are indices. `otherwise` stands
/// in for what is not there, at every step of the path.
value follow(heap& h, const value& x, const value& path,
             const std::optional<value>& otherwise = {}) {
  const auto present = [&](const value& found) {
    return otherwise && std::holds_alternative<undefined>(found) ? *otherwise : found;
  };
  if (const auto n = as_whole(path)) return present(get_item(h, x, *n));
  const auto* dotted = std::get_if<const text*>(&path);
  if (dotted == nullptr) h.fail("an attribute is named by a text");
  value at = x;
  const auto& bytes = (*dotted)->bytes();
  for (size_t from = 0; from <= bytes.size();) {
    auto to = bytes.find('.', from);
    if (to == std::string::npos) to = bytes.size();
    const auto name = bytes.substr(from, to - from);
    const bool is_number = !name.empty() && name.size() < 10
                           && name.find_first_not_of("0123456789") == std::string::npos;
    at = present(is_number ? get_item(h, at, static_cast<int64_t>(std::stoll(name)))
                           : get_item(h, at, h.make_text(name)));
    from = to + 1;
  }
  return at;
}

/// Texts compare without regard to case unless told otherwise.
value folded(heap& h, const value& x, bool case_sensitive) {
  const auto* s = std::get_if<const text*>(&x);
  if (case_sensitive || s == nullptr) return x;
  return h.make_text(to_lower((*s)->bytes()));
}

struct keyed {
  value key;
  value item;
};

/// Stable and safe whatever the comparison does: a merge sort that never reads past its range.
void sort_by_key(heap& h, std::vector<keyed>& items) {
  std::vector<keyed> spare(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t from = 0; from < items.size(); from += 2 * width) {
      const size_t middle = std::min(from + width, items.size());
      const size_t end = std::min(from + 2 * width, items.size());
      size_t left = from;
      size_t right = middle;
      for (size_t at = from; at < end; ++at) {
        const bool take_right =
            left >= middle || (right < end && compare(h, items[right].key, items[left].key) < 0);
        spare[at] = take_right ? items[right++] : items[left++];
      }
    }
    items.swap(spare);
  }
}

value extreme(environment& e, const value& x, arguments& args, int sign) {
  auto& h = e.memory;
  const bool case_sensitive = args.take_truth("case_sensitive", false);
  const auto attribute = args.take("attribute", none{});
  const bool has_attribute = !std::holds_alternative<none>(attribute);
  std::optional<keyed> best;
  for (const auto& item : elements(h, x)) {
    const auto key = folded(h, has_attribute ? follow(h, item, attribute) : item, case_sensitive);
    if (!best || compare(h, key, best->key) * sign > 0) best = keyed{key, item};
  }
  return best ? best->item : value{undefined{}};
}

/// The elements of what is true; none, 0 and false have none for map, select and their kin.
std::vector<value> some(heap& h, const value& x) {
  return truth(x) ? elements(h, x) : std::vector<value>{};
}

/// select, reject and their attr forms: a test by name with arguments, or truth.
value selected(environment& e, const value& x, arguments& args, bool by_attribute, bool wanted) {
  auto& h = e.memory;
  value attribute;
  if (by_attribute) attribute = args.need("attribute");
  std::string name;
  if (const auto test = args.take("")) {
    const auto* s = std::get_if<const text*>(&*test);
    if (s == nullptr) h.fail("a test is named by a text");
    name = (*s)->bytes();
  }
  arguments rest{h, name};
  while (auto each = args.take("")) rest.positional.push_back(*each);
  rest.named = std::move(args.named);
  args.named.clear();
  std::vector<value> kept;
  for (const auto& item : some(h, x)) {
    h.step();
    const auto tested = by_attribute ? follow(h, item, attribute) : item;
    auto copy = rest;
    if ((name.empty() ? truth(tested) : e.test(name, tested, copy)) == wanted) kept.push_back(item);
  }
  return h.make_list(std::move(kept), list_kind::lazy);
}

} // namespace

value filter_first(environment& e, const value& x, arguments&) {
  auto items = elements(e.memory, x);
  if (items.empty()) return undefined{};
  const auto first = items.front();
  if (const auto* l = std::get_if<const list_object*>(&x); l != nullptr && (*l)->is_lazy()) {
    items.erase(items.begin());
    (*l)->items = std::move(items);
  }
  return first;
}

value filter_last(environment& e, const value& x, arguments&) {
  if (const auto* l = std::get_if<const list_object*>(&x); l != nullptr && (*l)->is_lazy())
    e.memory.fail("a generator has no last item");
  const auto items = elements(e.memory, x);
  return items.empty() ? value{undefined{}} : items.back();
}

value filter_list(environment& e, const value& x, arguments&) {
  return e.memory.make_list(elements(e.memory, x));
}

value filter_items(environment& e, const value& x, arguments& args) {
  if (std::holds_alternative<undefined>(x)) return e.memory.make_list({}, list_kind::lazy);
  if (!std::holds_alternative<const dict_object*>(x)) e.memory.fail("items needs a dict");
  const auto items = call_method(e.memory, x, "items", args);
  return e.memory.make_list(elements(e.memory, items), list_kind::lazy);
}

value filter_join(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  const auto separator = to_text(h, args.take("d", h.make_text("")));
  const auto attribute = args.take("attribute", none{});
  text out;
  bool first = true;
  for (const auto& item : elements(h, x)) {
    if (!first) out.append(separator);
    first = false;
    const auto part =
        to_text(h, std::holds_alternative<none>(attribute) ? item : follow(h, item, attribute));
    h.charge(part.size() + separator.size());
    out.append(part);
  }
  return h.make_text(std::move(out));
}

value filter_reverse(environment& e, const value& x, arguments&) {
  auto& h = e.memory;
  if (const auto* s = std::get_if<const text*>(&x)) {
    const auto positions = character_positions((*s)->bytes());
    h.step(positions.size() / 8);
    text out;
    for (size_t i = positions.size() - 1; i > 0; --i)
      out.append_range(**s, positions[i - 1], positions[i]);
    return h.make_text(out.as_markup((*s)->is_markup()));
  }
  const auto* l = std::get_if<const list_object*>(&x);
  const auto kind = l != nullptr && (*l)->is_lazy() ? list_kind::list : list_kind::lazy;
  auto items = elements(h, x);
  std::ranges::reverse(items);
  return h.make_list(std::move(items), kind);
}

value filter_sort(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  const bool reverse = args.take_truth("reverse", false);
  const bool case_sensitive = args.take_truth("case_sensitive", false);
  const auto attribute = args.take("attribute", none{});
  std::vector<keyed> items;
  for (const auto& item : elements(h, x)) {
    const auto key = std::holds_alternative<none>(attribute) ? item : follow(h, item, attribute);
    items.push_back({folded(h, key, case_sensitive), item});
  }
  // Reversed twice, so that equal items keep their order.
  if (reverse) std::ranges::reverse(items);
  sort_by_key(h, items);
  if (reverse) std::ranges::reverse(items);
  std::vector<value> sorted;
  for (const auto& each : items) sorted.push_back(each.item);
  return h.make_list(std::move(sorted));
}

value filter_unique(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  const bool case_sensitive = args.take_truth("case_sensitive", false);
  const auto attribute = args.take("attribute", none{});
  auto* seen = h.make_dict();
  std::vector<value> kept;
  for (const auto& item : elements(h, x)) {
    const auto key =
        folded(h, std::holds_alternative<none>(attribute) ? item : follow(h, item, attribute),
               case_sensitive);
    if (find(h, *seen, key) != nullptr) continue;
    h.put(*seen, key, none{});
    kept.push_back(item);
  }
  return h.make_list(std::move(kept), list_kind::lazy);
}

value filter_dictsort(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  const bool case_sensitive = args.take_truth("case_sensitive", false);
  const auto by = args.take("by");
  const auto what = by ? to_text(h, *by).bytes() : std::string{"key"};
  const bool reverse = args.take_truth("reverse", false);
  if (what != "key" && what != "value") h.fail("dictsort goes by key or value");
  const auto* d = std::get_if<const dict_object*>(&x);
  if (d == nullptr) h.fail("dictsort needs a dict");
  std::vector<keyed> items;
  for (const auto& [key, item] : (*d)->members)
    items.push_back({folded(h, what == "key" ? key : item, case_sensitive),
                     h.make_list({key, item}, list_kind::tuple)});
  if (reverse) std::ranges::reverse(items);
  sort_by_key(h, items);
  if (reverse) std::ranges::reverse(items);
  std::vector<value> sorted;
  for (const auto& each : items) sorted.push_back(each.item);
  return h.make_list(std::move(sorted));
}

value filter_min(environment& e, const value& x, arguments& args) {
  return extreme(e, x, args, -1);
}

value filter_max(environment& e, const value& x, arguments& args) { return extreme(e, x, args, 1); }

value filter_sum(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  const auto attribute = args.take("attribute", none{});
  value total = args.take("start", int64_t{0});
  for (const auto& item : elements(h, x))
    total = arithmetic(h, "+", total,
                       std::holds_alternative<none>(attribute) ? item : follow(h, item, attribute));
  return total;
}

value filter_map(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  std::vector<value> made;
  if (args.positional.empty()) {
    const auto attribute = args.need("attribute");
    const auto otherwise = args.take("default");
    for (const auto& item : some(h, x)) made.push_back(follow(h, item, attribute, otherwise));
    return h.make_list(std::move(made), list_kind::lazy);
  }
  const auto name = args.need_text("filter")->bytes();
  arguments rest{h, name};
  while (auto each = args.take("")) rest.positional.push_back(*each);
  rest.named = std::move(args.named);
  args.named.clear();
  for (const auto& item : some(h, x)) {
    auto copy = rest;
    made.push_back(e.filter(name, item, copy));
  }
  return h.make_list(std::move(made), list_kind::lazy);
}

value filter_select(environment& e, const value& x, arguments& args) {
  return selected(e, x, args, false, true);
}

value filter_reject(environment& e, const value& x, arguments& args) {
  return selected(e, x, args, false, false);
}

value filter_selectattr(environment& e, const value& x, arguments& args) {
  return selected(e, x, args, true, true);
}

value filter_rejectattr(environment& e, const value& x, arguments& args) {
  return selected(e, x, args, true, false);
}

value filter_slice(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  const auto count = args.need_whole("slices");
  const auto fill = args.take("fill_with", none{});
  if (count < 1 || count > 100'000) h.fail("the slices of slice are not 1 to 100000");
  const auto items = elements(h, x);
  const auto slices = static_cast<size_t>(count);
  const size_t more = items.size() % slices; // slices with one item more than the others
  std::vector<value> columns;
  auto at = items.begin();
  for (size_t i = 0; i < slices; ++i) {
    const auto size = static_cast<std::ptrdiff_t>(items.size() / slices + (i < more ? 1 : 0));
    std::vector<value> column(at, at + size);
    at += size;
    if (i >= more && !std::holds_alternative<none>(fill)) column.push_back(fill);
    columns.emplace_back(h.make_list(std::move(column)));
  }
  return h.make_list(std::move(columns), list_kind::lazy);
}

value filter_groupby(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  const auto attribute = args.need("attribute");
  const auto otherwise = args.take("default");
  const bool given = otherwise && !std::holds_alternative<none>(*otherwise);
  const bool case_sensitive = args.take_truth("case_sensitive", false);
  const auto key_of_item = [&](const value& item) {
    return follow(h, item, attribute, given ? otherwise : std::nullopt);
  };
  std::vector<keyed> items;
  for (const auto& item : elements(h, x))
    items.push_back({folded(h, key_of_item(item), case_sensitive), item});
  sort_by_key(h, items);
  std::vector<value> groups;
  for (size_t from = 0, to = 0; from < items.size(); from = to) {
    std::vector<value> members;
    for (; to < items.size() && equal(h, items[to].key, items[from].key); ++to)
      members.push_back(items[to].item);
    const auto grouper = key_of_item(members.front());
    groups.emplace_back(h.make_list({grouper, h.make_list(std::move(members))}, list_kind::group));
  }
  return h.make_list(std::move(groups));
}

value filter_batch(environment& e, const value& x, arguments& args) {
  auto& h = e.memory;
  const auto size = args.need_whole("linecount");
  const auto fill = args.take("fill_with", none{});
  if (size < 1 || size > 100'000) h.fail("the size of batch is not 1 to 100000");
  std::vector<value> rows;
  std::vector<value> row;
  for (const auto& item : elements(h, x)) {
    if (static_cast<int64_t>(row.size()) == size) {
      rows.emplace_back(h.make_list(std::move(row)));
      row.clear();
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    if (!std::holds_alternative<none>(fill)) row.resize(static_cast<size_t>(size), fill);
    rows.emplace_back(h.make_list(std::move(row)));
  }
  return h.make_list(std::move(rows), list_kind::lazy);
}

} // namespace lamella::model::jinja
