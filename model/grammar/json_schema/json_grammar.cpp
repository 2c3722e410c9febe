#include "model/grammar/json_schema/json_grammar.hpp"

#include "base/json_writer.hpp"
#include "base/utf8.hpp"
#include "model/grammar/json_schema/number_grammar.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace lamella::model {

namespace {

using node_id = grammar::node_id;

constexpr uint32_t blanks_max = 32;

/// The characters that must be escaped.
const code_points escaped{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};

const byte_set hex_digits =
    bytes_between('0', '9') | bytes_between('a', 'f') | bytes_between('A', 'F');

/// The four digits behind \u: any character of one unit, or a pair of surrogates.
node_id unicode_escape(grammar& g, node_id next) {
  const auto hex = [&](unsigned count, node_id at) {
    for (; count > 0; --count) at = g.bytes(hex_digits, at);
    return at;
  };
  const auto set = [](std::string_view bytes) {
    byte_set s;
    for (const char b : bytes) s.set(static_cast<unsigned char>(b));
    return s;
  };
  const auto low_half = g.text("\\u", g.bytes(set("dD"), g.bytes(set("cdefCDEF"), hex(2, next))));
  const auto high_half = g.bytes(set("89abAB"), hex(2, low_half));
  const auto no_surrogate = g.bytes(set("01234567"), hex(2, next));
  return g.choice({g.bytes(hex_digits & ~set("dD"), hex(3, next)),
                   g.bytes(set("dD"), g.choice({no_surrogate, high_half}))});
}

/// One character of a string, itself or escaped in any way.
node_id character(grammar& g, node_id next) {
  static const code_points unescaped = code_points::all().without(escaped);
  byte_set short_escapes;
  for (const char b : std::string_view{"\"\\/bfnrt"}) short_escapes.set(static_cast<uint8_t>(b));
  const auto escape = g.choice(
      {g.bytes(short_escapes, next), g.bytes(byte_set{}.set('u'), unicode_escape(g, next))});
  return g.choice({one_of(g, unescaped, spelling::plain, next), g.text("\\", escape)});
}

} // namespace

node_id json_grammar::space(node_id next) {
  if (!space_) {
    space_ = grammar_.rule();
    auto blanks = grammar_.end();
    for (uint32_t i = 0; i < blanks_max; ++i)
      blanks = grammar_.maybe(grammar_.text(" ", blanks), grammar_.end());
    grammar_.begin(*space_, grammar_.choice({grammar_.end(), grammar_.text(" ", grammar_.end()),
                                             grammar_.text("\n", blanks)}));
  }
  return grammar_.call(*space_, next);
}

node_id json_grammar::characters(node_id next) {
  const auto again = grammar_.choice();
  grammar_.branch(again, {character(grammar_, again), next});
  return again;
}

grammar::rule_id json_grammar::character_rule() {
  if (!character_) {
    character_ = grammar_.rule();
    grammar_.begin(*character_, character(grammar_, grammar_.end()));
  }
  return *character_;
}

grammar::rule_id json_grammar::escape_rule() {
  if (!escape_) {
    escape_ = grammar_.rule();
    grammar_.begin(*escape_, one_of(grammar_, escaped, spelling::json, grammar_.end()));
  }
  return *escape_;
}

grammar::rule_id json_grammar::string_rule() {
  if (!string_) {
    string_ = grammar_.rule();
    grammar_.begin(*string_, grammar_.text("\"", characters(grammar_.text("\"", grammar_.end()))));
  }
  return *string_;
}

node_id json_grammar::any_string(node_id next) { return grammar_.call(string_rule(), next); }

node_id json_grammar::string_of(uint32_t min, uint32_t max, node_id next) {
  if (min == 0 && max == grammar::unbounded) return any_string(next);
  return grammar_.text("\"",
                       grammar_.repeat(character_rule(), min, max, grammar_.text("\"", next)));
}

grammar::rule_id json_grammar::object_rule() {
  if (!object_) {
    object_ = grammar_.rule();
    const auto close = space(grammar_.text("}", grammar_.end()));
    const auto behind_member = grammar_.choice();
    const auto member =
        any_string(grammar_.text(":", space(grammar_.call(value_rule(), behind_member))));
    grammar_.branch(behind_member, {grammar_.text(",", space(member)), close});
    grammar_.begin(*object_, grammar_.text("{", grammar_.choice({space(member), close})));
  }
  return *object_;
}

grammar::rule_id json_grammar::array_rule() {
  if (!array_) {
    array_ = grammar_.rule();
    const auto close = space(grammar_.text("]", grammar_.end()));
    const auto behind_item = grammar_.choice();
    const auto item = grammar_.call(value_rule(), behind_item);
    grammar_.branch(behind_item, {grammar_.text(",", space(item)), close});
    grammar_.begin(*array_, grammar_.text("[", grammar_.choice({space(item), close})));
  }
  return *array_;
}

grammar::rule_id json_grammar::value_rule() {
  if (!value_) {
    value_ = grammar_.rule(); // first: objects and arrays have values
    const auto end = grammar_.end();
    grammar_.begin(*value_,
                   grammar_.choice({any_string(end), grammar_.call(object_rule(), end),
                                    grammar_.call(array_rule(), end),
                                    number_within(grammar_, number_form::any, {}, end),
                                    grammar_.text("true", end), grammar_.text("false", end),
                                    grammar_.text("null", end)}));
  }
  return *value_;
}

node_id json_grammar::any_value(node_id next) { return grammar_.call(value_rule(), next); }

node_id json_grammar::any_object(node_id next) { return grammar_.call(object_rule(), next); }

node_id json_grammar::literal(const json_value& value, node_id next) {
  const auto list = [&](const auto& items, const char* open, const char* close, auto&& item) {
    auto at = space(grammar_.text(close, next));
    for (size_t i = items.size(); i-- > 0;)
      at = i > 0 ? grammar_.text(",", space(item(items[i], at))) : space(item(items[i], at));
    return grammar_.text(open, at);
  };
  if (const auto* items = value.get_if<json_value::array>())
    return list(*items, "[", "]",
                [&](const auto& x, node_id behind) { return literal(x, behind); });
  if (const auto* members = value.get_if<json_value::object>())
    return list(*members, "{", "}", [&](const auto& x, node_id behind) {
      return literal(json_value(x.first), grammar_.text(":", space(literal(x.second, behind))));
    });
  return grammar_.text(to_json(value), next);
}

/// Along a tree of the taken keys: whoever leaves it may go on as he likes, and who stays on it may
/// not end where a key does. Characters are spelt in one way only, so that no taken key has another
/// spelling.
node_id json_grammar::other_key(const std::vector<std::string>& taken, node_id next) {
  struct branch {
    std::map<char32_t, size_t> next;
    bool is_key = false;
  };
  std::vector<branch> tree(1); // what comes behind has a larger index
  for (const auto& key : taken) {
    size_t at = 0;
    for (size_t i = 0; i < key.size();) {
      const auto unit = decode_utf8(key, i);
      const auto [below, is_new] = tree[at].next.emplace(unit.code_point, tree.size());
      at = below->second;
      if (is_new) tree.emplace_back();
      i += unit.bytes;
    }
    tree[at].is_key = true;
  }
  const auto quote = grammar_.text("\"", next);
  const auto free = grammar_.choice();
  // Nearly all nodes of the tree leave with all characters of two of these kinds.
  static const code_points escaped{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  static const std::array<code_points, 3> kinds{code_points{{0, 0x7F}}.without(escaped),
                                                code_points{{0x80, 0x10FFFF}}, escaped};
  std::array<node_id, 3> any;
  for (size_t k = 0; k < kinds.size(); ++k)
    any[k] = k < 2 ? one_of(grammar_, kinds[k], spelling::json, free)
                   : grammar_.call(escape_rule(), free);
  grammar_.branch(free, {any[0], any[1], any[2], quote});
  std::vector<node_id> made(tree.size());
  for (size_t i = tree.size(); i-- > 0;) {
    code_points here;
    std::vector<node_id> branches;
    for (const auto& [c, below] : tree[i].next) {
      here.add(c, c);
      branches.push_back(one_of(grammar_, {{c, c}}, spelling::json, made[below]));
    }
    for (size_t k = 0; k < kinds.size(); ++k) {
      const auto others = kinds[k].without(here);
      const bool all = others.ranges() == kinds[k].ranges();
      branches.push_back(all ? any[k] : one_of(grammar_, others, spelling::json, free));
    }
    if (!tree[i].is_key) branches.push_back(quote);
    made[i] = grammar_.choice(std::move(branches));
  }
  return grammar_.text("\"", made[0]);
}

} // namespace lamella::model
