/// One scalar of an option: text to value, value to text, and what is allowed in words.
#include "config/nearest.hpp"
#include "config/options.hpp"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace lamella::config {
namespace {

struct unit {
  std::string_view suffix;
  double factor;
};

constexpr unit byte_units[] = {{"B", 1},    {"KiB", 1024.0},       {"MiB", 1048576.0},
                               {"KB", 1e3}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
                               {"kB", 1e3}, {"MB", 1e6},           {"GB", 1e9},
                               {"TB", 1e12}};
constexpr unit second_units[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};

/// A number with an optional suffix, in the smallest unit. Whole results only: 1.5KiB is 1536, 1.5
/// bytes are nothing.
std::optional<uint64_t> with_unit(const std::string& text, std::span<const unit> units,
                                  double bare) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (failure != std::errc{} || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  std::string_view suffix{rest, static_cast<size_t>(end - rest)};
  while (suffix.starts_with(' ')) suffix.remove_prefix(1);
  double factor = suffix.empty() ? bare : 0;
  for (const auto& u : units)
    if (u.suffix == suffix) factor = u.factor;
  if (factor == 0) return std::nullopt;
  // Whole numbers of bytes go through integers, so that 2^53 + 1 keeps its last bit.
  uint64_t whole = 0;
  const auto [whole_rest, whole_failure] = std::from_chars(text.data(), end, whole);
  uint64_t exact = 0;
  if (whole_failure == std::errc{} && whole_rest == rest
      && !__builtin_mul_overflow(whole, static_cast<uint64_t>(factor), &exact))
    return exact;
  const double scaled = number * factor;
  const double rounded = std::round(scaled);
  if (rounded > 9e18 || std::abs(scaled - rounded) > 1e-6) return std::nullopt;
  return static_cast<uint64_t>(rounded);
}

std::string bytes_text(uint64_t n) {
  const unit big[] = {
      {"TiB", 1099511627776.0}, {"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0}};
  for (const auto& u : big) {
    const auto factor = static_cast<uint64_t>(u.factor);
    if (n >= factor && n % factor == 0) return std::to_string(n / factor) + std::string{u.suffix};
  }
  return std::to_string(n);
}

std::string seconds_text(uint64_t ms) {
  auto text = std::to_string(ms / 1000);
  if (ms % 1000 == 0) return text;
  char tail[8];
  std::snprintf(tail, sizeof tail, ".%03u", static_cast<unsigned>(ms % 1000));
  text += tail;
  while (text.back() == '0') text.pop_back();
  return text;
}

std::string number_text(const option& x, uint64_t n) {
  switch (x.kind) {
  case option_kind::bytes:
    return bytes_text(n);
  case option_kind::seconds:
    return seconds_text(n);
  default:
    return std::to_string(n);
  }
}

std::string join_or(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

/// Long or unprintable values are not repeated whole.
std::string shown(const std::string& text) {
  constexpr size_t longest = 60;
  std::string cut = text.size() > longest ? text.substr(0, longest) + "..." : text;
  for (auto& c : cut)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  return "'" + cut + "'";
}

std::optional<std::string> parse_number(const option& x, const std::string& text, value& out) {
  if (x.accepts_auto && text == "auto") {
    out = automatic{};
    return std::nullopt;
  }
  std::optional<uint64_t> n;
  const char* what = "a whole number";
  if (x.kind == option_kind::bytes) {
    n = with_unit(text, byte_units, 1);
    what = "a number of bytes such as 512KiB, 16MiB or 1048576";
  } else if (x.kind == option_kind::seconds) {
    n = with_unit(text, second_units, 1000);
    what = "a number of seconds such as 15, 0.5, 500ms or 10m";
  } else {
    uint64_t whole = 0;
    const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), whole);
    if (failure == std::errc{} && rest == text.data() + text.size()) n = whole;
  }
  const auto range = "allowed: " + range_text(x);
  if (!n) return shown(text) + " is not " + what + " (" + range + ")";
  if (*n < x.minimum || *n > x.maximum) return shown(text) + " is out of range (" + range + ")";
  out = *n;
  return std::nullopt;
}

std::optional<std::string> parse_word(const option& x, const std::string& text) {
  if (!x.choices.empty()) {
    for (const auto& word : x.choices)
      if (word == text) return std::nullopt;
    auto problem = shown(text) + " is not one of " + range_text(x);
    if (const auto near = nearest(text, x.choices)) problem += "; did you mean " + *near + "?";
    return problem;
  }
  for (const char c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      return shown(text) + " contains a control character";
  if (x.allowed)
    if (const auto wrong = x.allowed(text); !wrong.empty()) return shown(text) + " " + wrong;
  return std::nullopt;
}

} // namespace

std::optional<std::string> parse_value(const option& x, const std::string& text, value& out) {
  switch (x.kind) {
  case option_kind::boolean:
    if (text == "true" || text == "false") {
      out = text == "true";
      return std::nullopt;
    }
    return shown(text) + " is not true or false";
  case option_kind::integer:
  case option_kind::bytes:
  case option_kind::seconds:
    return parse_number(x, text, out);
  case option_kind::address:
    if (!parse_address(text))
      return shown(text)
             + " is not an address (allowed: host:port with a port of 0 to 65535, such as "
               "127.0.0.1:8000 or \"[::1]:8000\")";
    break;
  case option_kind::path:
    if (text.size() > 4096) return "the path is longer than 4096 bytes";
    [[fallthrough]];
  case option_kind::text:
  case option_kind::choice:
    if (auto problem = parse_word(x, text)) return problem;
    break;
  case option_kind::text_list:
    return parse_list(x, {text}, out);
  }
  out = text;
  return std::nullopt;
}

std::optional<std::string> parse_list(const option& x, const std::vector<std::string>& texts,
                                      value& out) {
  if (x.maximum != 0 && texts.size() > x.maximum)
    return "has " + std::to_string(texts.size()) + " items (allowed: at most "
           + std::to_string(x.maximum) + ")";
  for (const auto& text : texts) {
    if (text.empty()) return "has an empty item";
    if (auto problem = parse_word(x, text)) return problem;
  }
  out = texts;
  return std::nullopt;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string to_text(const option& x, const value& v) {
  // Plain only where YAML could not read anything else into it.
  const auto scalar = [](const std::string& text) {
    const bool plain =
        !text.empty() && text != "true" && text != "false" && text != "null" && text != "Null"
        && text != "NULL" && text != "Null" && text != "NULL"
        && std::isalpha(static_cast<unsigned char>(text.front())) != 0
        && text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-./")
               == std::string::npos;
    return plain ? text : in_quotes(text);
  };
  if (std::holds_alternative<automatic>(v)) return "auto";
  if (const auto* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
  if (const auto* n = std::get_if<uint64_t>(&v)) return number_text(x, *n);
  if (const auto* s = std::get_if<std::string>(&v)) return scalar(*s);
  std::string text = "[";
  for (const auto& item : std::get<std::vector<std::string>>(v))
    text += (text.size() > 1 ? ", " : "") + scalar(item);
  return text + "]";
}

std::string range_text(const option& x) {
  switch (x.kind) {
  case option_kind::boolean:
    return "true or false";
  case option_kind::integer:
  case option_kind::bytes:
  case option_kind::seconds:
    return number_text(x, x.minimum) + " to " + number_text(x, x.maximum)
           + (x.accepts_auto ? " or auto" : "");
  case option_kind::address:
    return "host:port";
  case option_kind::path:
    return "a path";
  case option_kind::choice:
    return join_or(x.choices);
  case option_kind::text:
    return x.pattern.empty() ? "a text" : "auto, host or cuda:N";
  case option_kind::text_list:
    return "a list of texts";
  }
  return {};
}

} // namespace lamella::config
