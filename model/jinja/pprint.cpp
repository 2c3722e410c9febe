/// The filter pprint: values as Python's pprint.pformat() lays them out, in lines of 80 characters
/// where that can be done.
#include "model/jinja/text_filters.hpp"

#include <algorithm>
#include <utility>

namespace lamella::model::jinja {
namespace {

constexpr int64_t line_width = 80;

int64_t width_of(const text& x) { return static_cast<int64_t>(character_count(x.bytes())); }

const dict_object* as_dict(const value& x) {
  const auto* d = std::get_if<const dict_object*>(&x);
  return d != nullptr ? *d : nullptr;
}

/// A list or tuple; null where repr() has a form of its own for it.
const list_object* as_list(const value& x) {
  const auto* l = std::get_if<const list_object*>(&x);
  const bool is_plain =
      l != nullptr && ((*l)->kind == list_kind::list || (*l)->kind == list_kind::tuple);
  return is_plain ? *l : nullptr;
}

const text* as_plain_text(const value& x) {
  const auto* s = std::get_if<const text*>(&x);
  return s != nullptr && !(*s)->is_markup() ? *s : nullptr;
}

class pretty_printer {
public:
  explicit pretty_printer(heap& h) : heap_{h} {}

  text print(const value& x) {
    format(x, {0, 0}, 0);
    return std::move(out_);
  }

private:
  /// Characters that stand before a value in its line, and behind it.
  struct margins {
    int64_t indent, behind;
  };
  using member = std::pair<value, value>;

  void write(std::string_view x) { out_.append(x, true); }
  void new_line(int64_t indent) {
    heap_.charge(static_cast<size_t>(indent) + 1);
    write("\n" + std::string(static_cast<size_t>(indent), ' '));
  }

  void format(const value& x, margins around, int level) {
    const auto line = in_a_line(x, level);
    if (width_of(line) <= line_width - around.indent - around.behind) {
      out_.append(line);
    } else if (const auto* d = as_dict(x)) {
      format_members(*d, around, level + 1);
    } else if (const auto* l = as_list(x)) {
      format_items(*l, around, level + 1);
    } else if (const auto* s = as_plain_text(x)) {
      format_text(*s, around, level + 1);
    } else {
      out_.append(line);
    }
  }

  /// Python's order of keys that have no order: that of the names of their types.
  static int rank(const value& key) {
    return std::holds_alternative<none>(key)          ? 0
           : is_number(key)                           ? 1
           : std::holds_alternative<const text*>(key) ? 2
                                                      : 3;
  }

  std::vector<member> sorted(const dict_object& d) {
    auto members = d.members;
    heap_.charge(members.size() * sizeof(member));
    std::ranges::stable_sort(members, [&](const member& a, const member& b) {
      const auto x = rank(a.first), y = rank(b.first);
      return x != y ? x < y : (x == 1 || x == 2) && compare(heap_, a.first, b.first) < 0;
    });
    return members;
  }

  /// repr(), but with members of dicts in order.
  text in_a_line(const value& x, int depth) {
    if (depth > value_depth_max) heap_.fail_limit("values are nested too deeply");
    text line;
    const char* separator = "";
    if (const auto* d = as_dict(x)) {
      line.append("{", true);
      for (const auto& [key, item] : sorted(*d)) {
        line.append(std::exchange(separator, ", "), true);
        line.append(in_a_line(key, depth + 1));
        line.append(": ", true);
        line.append(in_a_line(item, depth + 1));
      }
      line.append("}", true);
    } else if (const auto* l = as_list(x)) {
      line.append(l->is_tuple() ? "(" : "[", true);
      for (const auto& item : l->items) {
        line.append(std::exchange(separator, ", "), true);
        line.append(in_a_line(item, depth + 1));
      }
      line.append(end_of(*l), true);
    } else {
      return to_repr(heap_, x);
    }
    heap_.charge(line.size());
    return line;
  }

  static const char* end_of(const list_object& l) {
    return !l.is_tuple() ? "]" : l.items.size() == 1 ? ",)" : ")";
  }

  void format_members(const dict_object& d, margins around, int level) {
    write("{");
    const auto members = sorted(d);
    for (size_t i = 0; i < members.size(); ++i) {
      const auto key = in_a_line(members[i].first, level);
      out_.append(key);
      write(": ");
      const bool last = i + 1 == members.size();
      format(members[i].second,
             {around.indent + 1 + width_of(key) + 2, last ? around.behind + 1 : 1}, level);
      if (last) break;
      write(",");
      new_line(around.indent + 1);
    }
    write("}");
  }

  void format_items(const list_object& l, margins around, int level) {
    const std::string end = end_of(l);
    write(l.is_tuple() ? "(" : "[");
    for (size_t i = 0; i < l.items.size(); ++i) {
      const bool last = i + 1 == l.items.size();
      const auto behind = last ? around.behind + static_cast<int64_t>(end.size()) : 1;
      format(l.items[i], {around.indent + 1, behind}, level);
      if (last) break;
      write(",");
      new_line(around.indent + 1);
    }
    write(end);
  }

  text quoted(const text& x) { return to_repr(heap_, heap_.make_text(x)); }

  /// A text in several, one below the other, cut behind lines and words. Brackets show that they
  /// are one where nothing else is around it.
  void format_text(const text& x, margins around, int level) {
    const bool alone = level == 1;
    if (alone) around = {around.indent + 1, around.behind + 1};
    std::vector<text> chunks;
    const auto lines = lines_of(x.bytes(), true);
    for (size_t i = 0; i < lines.size(); ++i) {
      const auto line = x.part(lines[i].from, lines[i].to);
      const auto behind = i + 1 == lines.size() ? around.behind : 0;
      if (auto whole = quoted(line); width_of(whole) <= line_width - around.indent - behind)
        chunks.push_back(std::move(whole));
      else
        cut(line, line_width - around.indent, behind, chunks);
    }
    const bool brackets = alone && chunks.size() > 1;
    if (brackets) write("(");
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (i > 0) new_line(around.indent);
      out_.append(chunks[i]);
    }
    if (brackets) write(")");
  }

  /// Words with the space behind them, as many as fit.
  void cut(const text& line, int64_t width, int64_t behind, std::vector<text>& chunks) {
    const auto& bytes = line.bytes();
    text current;
    for (size_t at = 0; at < bytes.size();) {
      const auto from = at;
      const auto pass = [&](bool space) {
        while (at < bytes.size() && is_space(character_at(bytes, at)) == space)
          at += character_bytes(bytes, at);
      };
      pass(false);
      pass(true);
      text candidate = current;
      candidate.append_range(line, from, at);
      if (at == bytes.size()) width -= behind;
      if (width_of(quoted(candidate)) <= width) {
        current = std::move(candidate);
        continue;
      }
      if (!current.empty()) chunks.push_back(quoted(current));
      current = line.part(from, at);
    }
    if (!current.empty()) chunks.push_back(quoted(current));
  }

  heap& heap_;
  text out_;
};

} // namespace

value filter_pprint(environment& e, const value& x, arguments&) {
  return e.memory.make_text(pretty_printer{e.memory}.print(x));
}

} // namespace lamella::model::jinja
