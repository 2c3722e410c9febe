#include "base/json.hpp"

#include "base/utf8.hpp"

#include <boost/json/basic_parser_impl.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace lamella {

namespace {

namespace bj = boost::json;

enum class violation {
  none,
  string_bytes,
  object_members,
  array_items,
  values,
  duplicate_key,
  number_range,
};

/// Builds a json_value from parser events. Containers that are still open lie on a stack; a
/// finished value goes into the top one.
class builder {
public:
  static constexpr size_t max_object_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_array_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_key_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_string_size = std::numeric_limits<size_t>::max();

  explicit builder(const json_limits& limits) : limits_(limits) {}

  json_value take() { return std::move(root_); }
  violation broken() const { return broken_; }
  const std::string& detail() const { return detail_; }

  bool on_document_begin(bj::error_code&) { return true; }
  bool on_document_end(bj::error_code&) { return true; }
  bool on_object_begin(bj::error_code&) {
    open_.push_back({true, {}, {}, {}});
    return true;
  }
  bool on_object_end(size_t, bj::error_code& ec) {
    json_value::object members = std::move(open_.back().members);
    open_.pop_back();
    if (!unique_keys(members)) return fail(violation::duplicate_key, ec);
    return put(json_value(std::move(members)), ec);
  }
  bool on_array_begin(bj::error_code&) {
    open_.push_back({false, {}, {}, {}});
    return true;
  }
  bool on_array_end(size_t, bj::error_code& ec) {
    json_value::array items = std::move(open_.back().items);
    open_.pop_back();
    return put(json_value(std::move(items)), ec);
  }
  bool on_key_part(bj::string_view part, size_t, bj::error_code& ec) { return append(part, ec); }
  bool on_key(bj::string_view part, size_t, bj::error_code& ec) {
    if (!append(part, ec)) return false;
    open_.back().key = std::move(text_);
    text_.clear();
    return true;
  }
  bool on_string_part(bj::string_view part, size_t, bj::error_code& ec) { return append(part, ec); }
  bool on_string(bj::string_view part, size_t, bj::error_code& ec) {
    if (!append(part, ec)) return false;
    std::string value = std::move(text_);
    text_.clear();
    return put(json_value(std::move(value)), ec);
  }
  bool on_number_part(bj::string_view part, bj::error_code& ec) { return append(part, ec); }
  bool on_int64(int64_t value, bj::string_view, bj::error_code& ec) {
    text_.clear();
    return put(json_value(value), ec);
  }
  bool on_uint64(uint64_t value, bj::string_view, bj::error_code& ec) {
    text_.clear();
    return put(json_value(value), ec);
  }
  bool on_double(double approximate, bj::string_view part, bj::error_code& ec) {
    if (!append(part, ec)) return false;
    // The parser's own double may be off by a unit in the last place; from_chars rounds correctly.
    double value = 0;
    const auto result = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (result.ec != std::errc{}) {
      if (!std::isfinite(approximate) || approximate != 0) {
        detail_ = text_;
        return fail(violation::number_range, ec);
      }
      value = 0; // too small for a double
    }
    const auto written = std::exchange(text_, {});
    if (written.find_first_of(".eE") != std::string::npos) return put(json_value(value), ec);
    return put(json_value(big_integer{written}), ec);
  }
  bool on_bool(bool value, bj::error_code& ec) { return put(json_value(value), ec); }
  bool on_null(bj::error_code& ec) { return put(json_value(), ec); }
  bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
  bool on_comment(bj::string_view, bj::error_code&) { return true; }

private:
  struct container {
    bool is_object;
    std::string key;
    json_value::object members;
    json_value::array items;
  };

  bool fail(violation what, bj::error_code& ec) {
    broken_ = what;
    ec = bj::error::exception; // any; broken_ says what it was
    return false;
  }

  bool append(bj::string_view part, bj::error_code& ec) {
    if (part.size() > limits_.string_bytes - std::min(text_.size(), limits_.string_bytes))
      return fail(violation::string_bytes, ec);
    text_.append(part.data(), part.size());
    return true;
  }

  bool put(json_value value, bj::error_code& ec) {
    if (++values_ > limits_.values) return fail(violation::values, ec);
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    container& top = open_.back();
    if (top.is_object) {
      if (top.members.size() == limits_.object_members) return fail(violation::object_members, ec);
      top.members.emplace_back(std::move(top.key), std::move(value));
    } else {
      if (top.items.size() == limits_.array_items) return fail(violation::array_items, ec);
      top.items.push_back(std::move(value));
    }
    return true;
  }

  /// Sorted, not pairwise: a text of many large objects must not cost quadratic time.
  bool unique_keys(const json_value::object& members) {
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (const auto& [key, value] : members) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end()) return true;
    detail_ = std::string(twice->substr(0, 64));
    return false;
  }

  const json_limits& limits_;
  std::vector<container> open_;
  std::string text_;
  json_value root_;
  size_t values_ = 0;
  violation broken_ = violation::none;
  std::string detail_;
};

/// Whether the byte at `at` lies within a string of the text, which is JSON up to there.
bool within_string(std::string_view text, size_t at) {
  bool within = false;
  for (size_t i = 0; i < at; ++i) {
    if (within && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      within = !within;
  }
  return within;
}

/// Whether a high surrogate is the last escape before `at`, where a low one must follow.
bool behind_high_surrogate(std::string_view text, size_t at) {
  if (at > 0 && text[at - 1] == '\\') --at; // of another escape
  if (at < 6) return false;
  const auto escape = text.substr(at - 6, 6);
  return escape.starts_with("\\u") && (escape[2] == 'd' || escape[2] == 'D')
         && std::string_view{"89abAB"}.find(escape[3]) != std::string_view::npos;
}

std::string hexadecimal(unsigned char byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return {digits[byte >> 4], digits[byte & 15]};
}

constexpr const char* lone_surrogate =
    "an escape \\uD800 to \\uDFFF stands without the other half of its pair";

/// What is wrong with a string at this byte.
std::string string_fault(std::string_view text, size_t at) {
  if (behind_high_surrogate(text, at)) return lone_surrogate;
  const char c = text[at];
  if (text[at - 1] == '\\' && c > 0x20 && c < 0x7F)
    return "\\" + std::string(1, c) + " is no escape of JSON";
  return "syntax error";
}

/// The word that the byte at `at` belongs to; empty: none.
std::string_view letters_at(std::string_view text, size_t at) {
  const auto letter = [&](size_t i) {
    return (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
  };
  size_t end = at;
  while (end < text.size() && end - at < 32 && letter(end)) ++end;
  if (end == at) return {};
  while (at > 0 && end - at < 64 && letter(at - 1)) --at;
  return text.substr(at, end - at);
}

/// What is wrong at the byte at which the parser stopped.
std::string syntax_fault(std::string_view text, size_t at) {
  if (at >= text.size()) return "syntax error";
  if (at == 0 && text.starts_with("\xEF\xBB\xBF"))
    return "the text begins with a byte order mark (EF BB BF): leave it out";
  const auto byte = static_cast<unsigned char>(text[at]);
  const bool within = within_string(text, at);
  if (byte < 0x20)
    return "a control character, U+00" + hexadecimal(byte)
           + (within ? ", stands in a string: write it as \\u00" + hexadecimal(byte)
                     : ", stands outside of strings: leave it out");
  if (byte >= 0x80 && decode_utf8(text, at).kind != utf8_unit::state::valid)
    return "the byte " + hexadecimal(byte) + " is not valid UTF-8";
  if (within) return string_fault(text, at);
  const auto word = letters_at(text, at);
  for (const char* number : {"NaN", "nan", "Infinity", "inf"})
    if (word == number) return std::string{word} + " is no number of JSON";
  return word.empty() ? "syntax error" : "syntax error at the word " + std::string{word};
}

std::string describe(const builder& from, bj::error_code ec, const json_limits& limits) {
  switch (from.broken()) {
  case violation::string_bytes:
    return "a string is longer than " + std::to_string(limits.string_bytes) + " bytes";
  case violation::object_members:
    return "an object has more than " + std::to_string(limits.object_members) + " members";
  case violation::array_items:
    return "an array has more than " + std::to_string(limits.array_items) + " items";
  case violation::values:
    return "there are more than " + std::to_string(limits.values) + " values";
  case violation::duplicate_key:
    return "the key \"" + from.detail() + "\" occurs twice";
  case violation::number_range:
    return "the number " + from.detail().substr(0, 64) + " is beyond the range of a double";
  case violation::none:
    break;
  }
  if (ec == bj::error::too_deep)
    return "it is nested deeper than " + std::to_string(limits.depth) + " levels";
  if (ec == bj::error::incomplete) return "the text is truncated";
  if (ec == bj::error::extra_data) return "something follows the value";
  if (ec == bj::error::illegal_leading_surrogate || ec == bj::error::illegal_trailing_surrogate)
    return lone_surrogate;
  return ec.message();
}

} // namespace

json_value::json_value(uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    data_ = static_cast<int64_t>(value);
  else
    data_ = value;
}

const json_value* json_value::find(std::string_view key) const {
  if (const auto* members = get_if<object>())
    for (const auto& [name, value] : *members)
      if (name == key) return &value;
  return nullptr;
}

std::string_view json_value::kind() const {
  switch (data_.index()) {
  case 0:
    return "null";
  case 1:
    return "a boolean";
  case 2:
  case 3:
  case 4:
  case 5:
    return "a number";
  case 6:
    return "a string";
  case 7:
    return "an array";
  default:
    return "an object";
  }
}

json_value parse_json(std::string_view text, const json_limits& limits) {
  if (text.size() > limits.text_bytes)
    throw json_syntax_error("not acceptable JSON: " + std::to_string(text.size())
                                + " bytes, at most " + std::to_string(limits.text_bytes)
                                + " are allowed",
                            limits.text_bytes);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw json_syntax_error("not acceptable JSON at byte 0: the text is empty", 0);
  bj::parse_options options;
  options.max_depth = limits.depth;
  bj::basic_parser<builder> parser(options, limits);
  bj::error_code ec;
  const size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && used < text.size()) ec = bj::error::extra_data;
  if (ec)
    throw json_syntax_error("not acceptable JSON at byte " + std::to_string(used) + ": "
                                + (ec == bj::error::syntax
                                       ? syntax_fault(text, used)
                                       : describe(parser.handler(), ec, limits)),
                            used);
  return parser.handler().take();
}

} // namespace lamella
