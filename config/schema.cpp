#include "config/schema.hpp"

#include "config/options.hpp"

#include <map>
#include <memory>

namespace lamella::config {
namespace {

/// The keys as a tree: a section has children, a leaf has an option. Children keep the table's
/// order.
struct section {
  const option* leaf = nullptr;
  std::vector<std::pair<std::string, std::unique_ptr<section>>> children;

  section& child(const std::string& name) {
    for (auto& [known, node] : children)
      if (known == name) return *node;
    return *children.emplace_back(name, std::make_unique<section>()).second;
  }
};

section tree_of_options() {
  section root;
  for (const auto& x : options()) {
    section* at = &root;
    size_t from = 0;
    for (size_t dot; (dot = x.key.find('.', from)) != std::string::npos; from = dot + 1)
      at = &at->child(x.key.substr(from, dot - from));
    at->child(x.key.substr(from)).leaf = &x;
  }
  return root;
}

std::string json_number(const option& x, uint64_t n) {
  if (x.kind != option_kind::seconds) return std::to_string(n);
  auto text = std::to_string(n / 1000);
  if (n % 1000 == 0) return text;
  auto tail = std::to_string(1000 + n % 1000).substr(1);
  while (tail.back() == '0') tail.pop_back();
  return text + "." + tail;
}

std::string json_list(const std::vector<std::string>& items) {
  std::string text = "[";
  for (const auto& item : items) text += (text.size() > 1 ? ", " : "") + in_quotes(item);
  return text + "]";
}

std::string json_value(const option& x, const value& v) {
  if (std::holds_alternative<automatic>(v)) return in_quotes("auto");
  if (const auto* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
  if (const auto* n = std::get_if<uint64_t>(&v)) return json_number(x, *n);
  if (const auto* s = std::get_if<std::string>(&v)) return in_quotes(*s);
  return json_list(std::get<std::vector<std::string>>(v));
}

/// `"type": ...` and the bounds of an option.
std::string json_type(const option& x) {
  const auto bounds = [&](const char* type) {
    return std::string{"\"type\": \""} + type + "\", \"minimum\": " + json_number(x, x.minimum)
           + ", \"maximum\": " + json_number(x, x.maximum);
  };
  // Numbers with a unit are texts in JSON; which texts is said by a pattern.
  const auto any_of = [&](const std::string& number, const std::string& pattern) {
    std::string text = "\"anyOf\": [{" + number + "}";
    if (!pattern.empty())
      text += ", {\"type\": \"string\", \"pattern\": " + in_quotes(pattern) + "}";
    if (x.accepts_auto) text += ", {\"const\": \"auto\"}";
    return text + "]";
  };
  switch (x.kind) {
  case option_kind::boolean:
    return "\"type\": \"boolean\"";
  case option_kind::integer:
    return x.accepts_auto ? any_of(bounds("integer"), {}) : bounds("integer");
  case option_kind::bytes:
    return any_of(bounds("integer"), "^[0-9]+(\\.[0-9]+)? ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$");
  case option_kind::seconds:
    return any_of(bounds("number"), "^[0-9]+(\\.[0-9]+)? ?(ms|s|m|h)$");
  case option_kind::address:
    return "\"type\": \"string\", \"pattern\": \"^.+:[0-9]{1,5}$\"";
  case option_kind::path:
    return "\"type\": [\"string\", \"null\"], \"maxLength\": 4096";
  case option_kind::choice:
    return "\"enum\": " + json_list(x.choices);
  case option_kind::text:
    if (!x.pattern.empty()) return "\"type\": \"string\", \"pattern\": " + in_quotes(x.pattern);
    return "\"type\": [\"string\", \"null\"], \"maxLength\": " + std::to_string(x.maximum);
  case option_kind::text_list:
    return "\"type\": [\"array\", \"null\"], \"items\": {\"type\": \"string\"}, \"maxItems\": "
           + std::to_string(x.maximum);
  }
  return {};
}

const char* reload_word(const option& x) { return x.when == reload::live ? "live" : "restart"; }

void write_leaf(std::string& out, const std::string& name, const option& x,
                const settings& defaults, const std::string& indent, bool inherits) {
  out += indent + in_quotes(name) + ": {" + json_type(x)
         + ", \"description\": " + in_quotes(x.sentence);
  if (!inherits) out += ", \"default\": " + json_value(x, x.get(defaults));
  out += std::string{", \"x-reload\": \""} + reload_word(x) + "\"}";
}

/// The body of an object: its properties, and what cells and aliases add.
void write_section(std::string& out, const section& at, const std::string& key,
                   const settings& defaults, const std::string& indent, bool inherits) {
  const auto inner = indent + "  ";
  out += "\"type\": [\"object\", \"null\"], \"additionalProperties\": false, \"properties\": {\n";
  bool first = true;
  const auto separate = [&] {
    if (!first) out += ",\n";
    first = false;
  };
  if (key.empty()) {
    separate();
    out += inner
           + "\"version\": {\"const\": 1, \"description\": \"Version of this file's language; the "
             "first key.\"}";
  }
  for (const auto& [name, child] : at.children) {
    separate();
    if (child->leaf != nullptr) {
      write_leaf(out, name, *child->leaf, defaults, inner, inherits);
      continue;
    }
    out += inner + in_quotes(name) + ": {";
    write_section(out, *child, key.empty() ? name : key + "." + name, defaults, inner, inherits);
    out += "}";
  }
  for (const auto& [alias, target] : aliases()) {
    const auto dot = alias.rfind('.');
    if (alias.substr(0, dot) != key) continue;
    separate();
    write_leaf(out, alias.substr(dot + 1), *find_option(target), defaults, inner, true);
  }
  if (key == "pools.attention" && !inherits) {
    separate();
    out += inner
           + "\"cells\": {\"type\": [\"object\", \"null\"], \"description\": \"Attention cells by "
             "name: slot tables beside each other, each with members of its own. They take the "
             "place of the one pool, and inherit the options beside cells.\",\n"
           + inner + "  \"propertyNames\": {\"pattern\": \"^[a-z][a-z0-9_]{0,31}$\"},\n" + inner
           + "  \"additionalProperties\": {";
    write_section(out, at, key, defaults, inner + "  ", true);
    out += "}}";
  }
  out += "\n" + indent + "}";
}

struct line {
  std::string key;
  const option* leaf; ///< null: a cell without options of its own
  value v;
  const origin* from; ///< null: built in

  std::string yaml() const { return leaf != nullptr ? to_text(*leaf, v) : "{}"; }
  std::string json() const { return leaf != nullptr ? json_value(*leaf, v) : "{}"; }
};

/// What to show: options in table order, then the cells.
std::vector<line> lines_of(const loaded& from, const show_options& how) {
  std::vector<line> lines;
  const auto origin_of = [&](const std::string& key) -> const origin* {
    const auto found = from.origins.find(key);
    return found == from.origins.end() ? nullptr : &found->second;
  };
  for (const auto& x : options()) {
    const auto* where = origin_of(x.key);
    if (how.effective || where != nullptr) lines.push_back({x.key, &x, x.get(from.value), where});
    if (x.key != "pools.attention.kv_bytes") continue; // the last of the pool: its cells follow
    for (const auto& [name, cell] : from.value.pools.attention.cells) {
      const auto of_cell = "pools.attention.cells." + name;
      const auto before = lines.size();
      for (const auto& each : options()) {
        if (!each.key.starts_with("pools.attention.")) continue;
        const auto key = of_cell + each.key.substr(each.key.rfind('.'));
        const auto* own = origin_of(key);
        const auto* inherited = own != nullptr ? own : origin_of(each.key);
        if (how.effective || own != nullptr)
          lines.push_back({key, &each, get_in_cell(each, cell), inherited});
      }
      if (lines.size() == before) lines.push_back({of_cell, nullptr, {}, nullptr});
    }
  }
  return lines;
}

std::string origin_text(const line& x) { return x.from == nullptr ? "built-in" : x.from->text(); }

std::vector<std::string> split_key(const std::string& key) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t dot; (dot = key.find('.', from)) != std::string::npos; from = dot + 1)
    parts.push_back(key.substr(from, dot - from));
  parts.push_back(key.substr(from));
  return parts;
}

} // namespace

std::string schema_json() {
  const settings defaults;
  std::string out = "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
                    "  \"title\": \"Lamella configuration\",\n  \"required\": [\"version\"],\n  ";
  write_section(out, tree_of_options(), {}, defaults, "  ", false);
  // The file itself is an object, never null.
  const std::string nullable = "\"type\": [\"object\", \"null\"]";
  out.replace(out.find(nullable), nullable.size(), "\"type\": \"object\"");
  return out + "\n}\n";
}

std::string reference_text() {
  const settings defaults;
  std::string out =
      "# Options\n\nEvery key can be set in the file, by the environment variable and by "
      "`--set KEY=VALUE`.\nSIGHUP and `POST /admin/reload` reread all of them and apply new "
      "values of those marked `live`; the others need a restart.\n";
  for (const auto& x : options()) {
    out += "\n## " + x.key + "\n\n" + x.sentence + "\n\n";
    out += "- allowed: " + range_text(x) + "\n";
    out += "- default: `" + to_text(x, x.get(defaults)) + "`\n";
    out += std::string{"- reload: "} + reload_word(x) + "\n";
    out += "- environment: `" + environment_name(x.key) + "`\n";
    for (const auto& [alias, key] : aliases())
      if (key == x.key) out += "- also called: `" + alias + "`\n";
  }
  return out
         + "\n## pools.attention.cells.NAME\n\nAttention cells beside each other, in place of the "
           "one pool: each is a slot table with shards of its own, and a sequence has its KV in "
           "one of them. A cell takes `members` and `kv_bytes`, and inherits all other options of "
           "`pools.attention`. `members`, `partition`, `kv_bytes`, `min` and `max` are live; so "
           "are all options of a new cell and of one without members.\n";
}

std::string show_yaml(const loaded& from, const show_options& how) {
  std::string out = "version: 1\n";
  std::vector<std::string> last;
  for (const auto& x : lines_of(from, how)) {
    const auto parts = split_key(x.key);
    size_t shared = 0;
    while (shared + 1 < parts.size() && shared + 1 < last.size() && parts[shared] == last[shared])
      ++shared;
    for (size_t i = shared; i + 1 < parts.size(); ++i)
      out += std::string(2 * i, ' ') + parts[i] + ":\n";
    out += std::string(2 * (parts.size() - 1), ' ') + parts.back() + ": " + x.yaml();
    if (how.with_origin && x.leaf != nullptr) out += "  # " + origin_text(x);
    out += "\n";
    last = parts;
  }
  return out;
}

std::string show_json(const loaded& from, const show_options& how) {
  std::string out = "{\"version\": 1, \"options\": [";
  const char* separator = "\n";
  for (const auto& x : lines_of(from, how)) {
    out += separator;
    out += "  {\"key\": " + in_quotes(x.key) + ", \"value\": " + x.json();
    if (how.with_origin && x.leaf != nullptr) out += ", \"origin\": " + in_quotes(origin_text(x));
    // Cells may come and go at a reload.
    out += std::string{", \"reload\": \""} + (x.leaf != nullptr ? reload_word(*x.leaf) : "live")
           + "\"}";
    separator = ",\n";
  }
  return out + "\n]}\n";
}

std::vector<difference> diff(const settings& a, const settings& b) {
  const auto flat = [](const settings& s) {
    loaded whole;
    whole.value = s;
    return lines_of(whole, {.effective = true, .with_origin = false});
  };
  const auto before = flat(a);
  const auto after = flat(b);
  const auto find = [](const std::vector<line>& lines, const std::string& key) -> const line* {
    for (const auto& x : lines)
      if (x.key == key) return &x;
    return nullptr;
  };
  std::vector<difference> found;
  for (const auto& x : before) {
    const auto* y = find(after, x.key);
    if (y != nullptr && y->v == x.v) continue;
    found.push_back({x.key, to_text(*x.leaf, x.v), y ? to_text(*y->leaf, y->v) : std::string{},
                     x.leaf->when == reload::restart});
  }
  for (const auto& y : after)
    if (find(before, y.key) == nullptr)
      found.push_back({y.key, {}, to_text(*y.leaf, y.v), y.leaf->when == reload::restart});
  return found;
}

} // namespace lamella::config
