#include "config/reader.hpp"

#include "config/nearest.hpp"

#include <algorithm>
#include <charconv>

namespace lamella::config {
namespace {

constexpr std::string_view cells_key = "pools.attention.cells";

/// The words that may stand right below a prefix ("" for the top).
std::vector<std::string> children_of(const std::string& prefix) {
  std::set<std::string> names;
  const auto add = [&](std::string_view key, const std::string& below) {
    if (!below.empty()) {
      if (!key.starts_with(below) || key.size() <= below.size() || key[below.size()] != '.') return;
      key.remove_prefix(below.size() + 1);
    }
    names.insert(std::string{key.substr(0, key.find('.'))});
  };
  const bool in_cell = prefix.starts_with(std::string{cells_key} + ".");
  const auto below = in_cell ? std::string{"pools.attention"} : prefix;
  for (const auto& x : options()) add(x.key, below);
  for (const auto& [alias, key] : aliases()) add(alias, below);
  if (below == "pools.attention" && !in_cell) names.insert("cells");
  if (below.empty()) names.insert("version");
  return {names.begin(), names.end()};
}

bool is_section(const std::string& key) {
  if (key == cells_key) return true;
  const auto below = key + ".";
  return std::ranges::any_of(options(), [&](const auto& x) { return x.key.starts_with(below); });
}

/// The option a full key means, in a cell too.
const option* option_of(const std::string& key) {
  if (const auto cell = split_cell_key(key)) return find_option(cell->key);
  return find_option(key);
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

} // namespace

reader::reader(loaded& result, const std::map<std::string, std::string>& environment)
    : result_{result}, environment_{environment} {}

void reader::complain(const position& at, const std::string& key, std::string message,
                      std::string hint) {
  result_.problems.push_back({where_.source, at, key, std::move(message), std::move(hint)});
}

void reader::complain_about_unknown(const position& at, const std::string& prefix,
                                    const std::string& name) {
  const auto key = prefix.empty() ? name : prefix + "." + name;
  const auto siblings = children_of(prefix);
  auto near = nearest(name, siblings);
  if (!near && name.size() >= 3)
    for (const auto& sibling : siblings)
      if (sibling.starts_with(name)) near = sibling;
  std::string meant;
  if (near) {
    meant = prefix.empty() ? *near : prefix + "." + *near;
  } else {
    // A whole key, as --set has it, misspelt in the middle.
    std::vector<std::string> keys;
    for (const auto& x : options()) keys.emplace_back(x.key);
    meant = nearest(key, keys).value_or("");
    // Perhaps the word is right and stands in the wrong place.
    const auto last = "." + name.substr(name.rfind('.') + 1);
    for (const auto& x : options())
      if (meant.empty() && x.key.ends_with(last)) meant = x.key;
  }
  // What there is in this section, or in the nearest one around it that exists.
  auto section = prefix;
  while (!section.empty() && children_of(section).empty())
    section.resize(section.rfind('.') == std::string::npos ? 0 : section.rfind('.'));
  std::string known;
  for (const auto& child : children_of(section)) known += (known.empty() ? "" : ", ") + child;
  complain(at, key, "is not a known key",
           meant.empty() ? "known here: " + known : "did you mean " + meant + "?");
}

void reader::check_version(const node& root, bool is_main) {
  const bool first = !root.pairs.empty() && root.pairs.front().key == "version";
  if (is_main && !first)
    complain(root.at.line == 0 ? position{1, 1} : root.at, "version", "must be the first key",
             "begin the file with version: 1");
  for (const auto& pair : root.pairs)
    if (pair.key == "version" && (pair.item.type != node::kind::scalar || pair.item.text != "1"))
      complain(pair.item.at, "version",
               "'" + pair.item.text.substr(0, 20) + "' is not supported (allowed: 1)");
}

void reader::apply_file(const std::filesystem::path& file, std::string_view text, bool is_main) {
  where_ = {origin::kind::file, file.string(), {}};
  std::vector<document_problem> problems;
  const auto root = parse_document(text, problems);
  for (auto& x : problems) complain(x.at, {}, std::move(x.message));
  if (root.type == node::kind::scalar || root.type == node::kind::list) {
    complain(root.at, {}, "is not a map of keys to values", "begin the file with version: 1");
    return;
  }
  if (root.type == node::kind::null && !problems.empty()) return; // said already
  check_version(root, is_main);
  apply_map(root, {});
}

void reader::complain_about_both_names(const node& map, const std::string& prefix) {
  const auto given = [&](const std::string& key) {
    return std::ranges::find_if(map.pairs,
                                [&](const auto& x) { return prefix + "." + x.key == key; });
  };
  for (const auto& [alias, target] : aliases())
    if (const auto x = given(alias), y = given(target);
        x != map.pairs.end() && y != map.pairs.end())
      complain(x->at, alias, "is another name of " + target + ", and both are given",
               "give one of them");
}

void reader::apply_map(const node& map, const std::string& prefix) {
  complain_about_both_names(map, prefix);
  for (const auto& pair : map.pairs) {
    if (prefix.empty() && pair.key == "version") continue;
    apply_entry(pair.item, pair.at, prefix, pair.key);
  }
}

void reader::apply_entry(const node& item, const position& at, const std::string& prefix,
                         const std::string& name) {
  const auto key = prefix.empty() ? name : prefix + "." + name;
  // A dotted word in a file would otherwise reach options around their sections.
  const bool dotted = where_.from == origin::kind::file && name.find('.') != std::string::npos;
  if (prefix == cells_key && !dotted) {
    if (const auto wrong = check_cell_name(name); !wrong.empty()) {
      complain(at, key, "the name of a cell " + wrong, "for example pools.attention.cells.east");
      return;
    }
    if (item.type != node::kind::map && item.type != node::kind::null) {
      complain(item.at, key, "must be a map of options of an attention pool");
      return;
    }
    cells_[name];
    apply_map(item, key);
    return;
  }
  if (const auto* x = dotted ? nullptr : option_of(key)) {
    apply_option(*x, item, at, key);
    return;
  }
  if (!dotted && is_section(key)) {
    if (item.type == node::kind::map)
      apply_map(item, key);
    else if (item.type != node::kind::null)
      complain(item.at, key, "must be a map of options, not a value");
    return;
  }
  complain_about_unknown(at, prefix, name);
}

void reader::apply_option(const option& x, const node& item, const position& at,
                          const std::string& key) {
  value v;
  std::optional<std::string> wrong;
  switch (item.type) {
  case node::kind::null:
    if (x.kind == option_kind::text || x.kind == option_kind::path)
      wrong = parse_value(x, "", v);
    else if (x.kind == option_kind::text_list)
      v = std::vector<std::string>{};
    else
      wrong = "has no value (allowed: " + range_text(x) + ")";
    break;
  case node::kind::scalar:
    if (x.kind == option_kind::text_list)
      wrong = "must be a list, such as [a, b]";
    else
      wrong = parse_value(x, x.kind == option_kind::path ? rooted(item.text) : item.text, v);
    break;
  case node::kind::list: {
    std::vector<std::string> texts;
    for (const auto& each : item.items) {
      if (each.type != node::kind::scalar) wrong = "must be a list of texts";
      texts.push_back(each.text);
    }
    if (x.kind != option_kind::text_list)
      wrong = "must be a single value (allowed: " + range_text(x) + ")";
    else if (!wrong)
      wrong = parse_list(x, texts, v);
    break;
  }
  case node::kind::map:
    wrong = "must be a single value (allowed: " + range_text(x) + ")";
    break;
  }
  if (wrong)
    complain(item.at.line == 0 ? at : item.at, key, *wrong);
  else
    store(x, key, at, std::move(v));
}

void reader::store(const option& x, const std::string& key, const position& at, value v) {
  auto where = where_;
  where.at = at;
  if (const auto cell = split_cell_key(key)) {
    cells_[cell->cell][x.key] = std::move(v);
    result_.origins["pools.attention.cells." + cell->cell + x.key.substr(x.key.rfind('.'))] = where;
    return;
  }
  x.set(result_.value, v);
  result_.origins[x.key] = where;
}

void reader::apply_list_item(const std::string& key, size_t bracket, const std::string& text) {
  const auto name = key.substr(0, bracket);
  const auto* x = option_of(name);
  size_t index = 0;
  const char* last = key.data() + key.size() - 1;
  const auto [end, failure] = std::from_chars(key.data() + bracket + 1, last, index);
  if (failure != std::errc{} || end != last || *last != ']') {
    complain({}, key, "has a list index that is not a number in brackets",
             "for example model.aliases[0]=small");
    return;
  }
  if (x == nullptr || x->kind != option_kind::text_list) {
    complain({}, key, "is not an item of a list option");
    return;
  }
  auto texts = std::get<std::vector<std::string>>(x->get(result_.value));
  if (index > texts.size()) {
    complain({}, key,
             "the list has " + std::to_string(texts.size()) + " items (allowed: 0 to "
                 + std::to_string(texts.size()) + ")");
    return;
  }
  texts.resize(std::max(texts.size(), index + 1));
  texts[index] = text;
  value v;
  if (const auto wrong = parse_list(*x, texts, v))
    complain({}, key, *wrong);
  else
    store(*x, x->key, {}, std::move(v));
}

void reader::apply_text(const origin& where, const std::string& key, const std::string& text) {
  where_ = where;
  const auto value_text = trimmed(text);
  if (const auto bracket = key.find('['); bracket != std::string::npos) {
    apply_list_item(key, bracket, value_text);
    return;
  }
  if (key == "version") {
    complain({}, key, "can be set only in files");
    return;
  }
  const auto cell = split_cell_key(key);
  if (cell) {
    if (const auto wrong = check_cell_name(cell->cell); !wrong.empty()) {
      complain({}, key, "the name of a cell " + wrong, "for example pools.attention.cells.east");
      return;
    }
  }
  const auto* x = option_of(key);
  node item;
  const bool is_quoted = value_text.starts_with('"') || value_text.starts_with('\'');
  if (x != nullptr && x->kind != option_kind::text_list && !is_quoted) {
    // Without YAML in between, [::1]:8000 and "a: b" need no quotes here.
    if (!value_text.empty()) {
      item.type = node::kind::scalar;
      item.text = value_text;
    }
  } else {
    std::vector<document_problem> problems;
    item = parse_document(value_text, problems);
    for (auto& problem : problems) complain({}, key, std::move(problem.message));
    if (!problems.empty()) return;
  }
  // Positions inside a value of one line say nothing.
  const auto forget = [](const auto& self, node& n) -> void {
    n.at = {};
    for (auto& each : n.items) self(self, each);
    for (auto& pair : n.pairs) {
      pair.at = {};
      self(self, pair.item);
    }
  };
  forget(forget, item);
  const auto dot = key.rfind('.');
  const auto prefix = dot == std::string::npos ? std::string{} : key.substr(0, dot);
  apply_entry(item, {}, prefix, dot == std::string::npos ? key : key.substr(dot + 1));
}

std::string reader::rooted(const std::string& path) const {
  if (path.starts_with("~/")) {
    const auto home = environment_.find("HOME");
    if (home != environment_.end()) return home->second + path.substr(1);
  }
  if (where_.from != origin::kind::file || path.empty() || path.front() == '/') return path;
  return (std::filesystem::path{where_.source}.parent_path() / path).lexically_normal().string();
}

void reader::finish() {
  auto& attention = result_.value.pools.attention;
  for (const auto& [name, own] : cells_) {
    attention_pool_settings cell = attention;
    cell.least = cell.most = 0; // those of the pool are of all cells together
    for (const auto& [key, v] : own) set_in_cell(*find_option(key), cell, v);
    attention.cells[name] = cell;
  }
  for (const auto& broken : check(result_.value)) {
    // Points at the first of the keys that somebody wrote; a cell may have it from its base.
    const origin* found = nullptr;
    for (const auto& key : broken.keys) {
      auto at = result_.origins.find(key);
      if (const auto cell = split_cell_key(key); at == result_.origins.end() && cell)
        at = result_.origins.find(cell->key);
      if (found == nullptr && at != result_.origins.end()) found = &at->second;
    }
    std::string keys;
    for (const auto& key : broken.keys) keys += (keys.empty() ? "" : ", ") + key;
    result_.problems.push_back({found ? found->source : "configuration",
                                found ? found->at : position{}, keys, broken.message, broken.hint});
  }
}

} // namespace lamella::config
