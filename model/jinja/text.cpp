#include "model/jinja/text.hpp"

#include <unicode/ucasemap.h>
#include <unicode/uchar.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <array>

namespace lamella::model::jinja {

void text::append(std::string_view bytes, bool trusted) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (!runs_.empty() && runs_.back().trusted == trusted)
    runs_.back().end = bytes_.size();
  else
    runs_.push_back({bytes_.size(), trusted});
}

void text::append_range(const text& other, size_t from, size_t to) {
  const std::string_view all{other.bytes_};
  // Runs are in order: skip those that end before the range.
  auto r = std::ranges::upper_bound(other.runs_, from, {}, &run::end);
  while (from < to && r != other.runs_.end()) {
    const size_t end = std::min(r->end, to);
    append(all.substr(from, end - from), r->trusted);
    from = end;
    ++r;
  }
}

text text::part(size_t from, size_t to) const {
  text out;
  out.append_range(*this, from, to);
  return out;
}

size_t character_bytes(std::string_view bytes, size_t at) {
  const auto lead = static_cast<unsigned char>(bytes[at]);
  const size_t length = lead >= 0xf0 && lead < 0xf8 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  if (lead >= 0xf8 || at + length > bytes.size()) return 1;
  for (size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(bytes[at + i]) & 0xc0) != 0x80) return 1;
  return length;
}

size_t character_count(std::string_view bytes) {
  size_t count = 0;
  for (size_t at = 0; at < bytes.size(); at += character_bytes(bytes, at)) ++count;
  return count;
}

std::vector<size_t> character_positions(std::string_view bytes) {
  std::vector<size_t> positions;
  positions.reserve(bytes.size() + 1);
  for (size_t at = 0; at < bytes.size(); at += character_bytes(bytes, at)) positions.push_back(at);
  positions.push_back(bytes.size());
  return positions;
}

char32_t character_at(std::string_view bytes, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[at + i]); };
  switch (character_bytes(bytes, at)) {
  case 2:
    return (byte(0) & 0x1fu) << 6 | (byte(1) & 0x3fu);
  case 3:
    return (byte(0) & 0x0fu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
  case 4:
    return (byte(0) & 0x07u) << 18 | (byte(1) & 0x3fu) << 12 | (byte(2) & 0x3fu) << 6
           | (byte(3) & 0x3fu);
  default:
    return byte(0);
  }
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t bits) { out += static_cast<char>(bits); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0
         || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f
         || c == 0x205f || c == 0x3000;
}

byte_range strip(std::string_view bytes, bool left, bool right, const std::string* set) {
  std::vector<char32_t> members;
  if (set != nullptr)
    for (size_t at = 0; at < set->size(); at += character_bytes(*set, at))
      members.push_back(character_at(*set, at));
  const auto goes = [&](char32_t c) {
    return set == nullptr ? is_space(c) : std::ranges::find(members, c) != members.end();
  };
  size_t from = 0;
  size_t to = bytes.size();
  while (left && from < to && goes(character_at(bytes, from))) from += character_bytes(bytes, from);
  while (right && from < to) {
    size_t last = to - 1;
    while (last > from && (static_cast<unsigned char>(bytes[last]) & 0xc0) == 0x80) --last;
    if (last + character_bytes(bytes, last) != to) last = to - 1; // stray bytes go one by one
    if (!goes(character_at(bytes, last))) break;
    to = last;
  }
  return {from, to};
}

namespace {

bool is_ascii(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

using mapping = int32_t (*)(const UCaseMap*, char*, int32_t, const char*, int32_t, UErrorCode*);

/// Full mappings may grow a string; three times is more than any of them needs.
std::string map_case(std::string_view bytes, mapping map) {
  UErrorCode status = U_ZERO_ERROR;
  UCaseMap* cases = ucasemap_open("", 0, &status);
  if (U_FAILURE(status)) return std::string{bytes};
  std::string out(bytes.size() * 3 + 8, '\0');
  const int32_t size = map(cases, out.data(), static_cast<int32_t>(out.size()), bytes.data(),
                           static_cast<int32_t>(bytes.size()), &status);
  ucasemap_close(cases);
  if (U_FAILURE(status) || size < 0) return std::string{bytes};
  out.resize(static_cast<size_t>(size));
  return out;
}

std::string title_of(char32_t c) {
  std::string out;
  append_utf8(out, c);
  // Letters such as the sharp s change to several; the full mapping knows them.
  const auto upper = to_upper(out);
  if (character_count(upper) > 1) return to_capitalized(upper);
  out.clear();
  append_utf8(out, static_cast<char32_t>(u_totitle(static_cast<UChar32>(c))));
  return out;
}

} // namespace

std::string to_upper(std::string_view bytes) {
  if (!is_ascii(bytes)) return map_case(bytes, ucasemap_utf8ToUpper);
  std::string out{bytes};
  for (auto& c : out) c = ascii_upper(c);
  return out;
}

std::string to_lower(std::string_view bytes) {
  if (!is_ascii(bytes)) return map_case(bytes, ucasemap_utf8ToLower);
  std::string out{bytes};
  for (auto& c : out) c = ascii_lower(c);
  return out;
}

std::string to_capitalized(std::string_view bytes) {
  if (bytes.empty()) return {};
  const size_t first = character_bytes(bytes, 0);
  if (first == 1) return std::string(1, ascii_upper(bytes[0])) + to_lower(bytes.substr(1));
  return title_of(character_at(bytes, 0)) + to_lower(bytes.substr(first));
}

std::string to_title(std::string_view bytes) {
  std::string out;
  bool in_word = false;
  for (size_t at = 0; at < bytes.size(); at += character_bytes(bytes, at)) {
    const auto c = static_cast<UChar32>(character_at(bytes, at));
    const auto one = bytes.substr(at, character_bytes(bytes, at));
    const bool cased = u_hasBinaryProperty(c, UCHAR_CASED);
    if (cased)
      out += in_word ? to_lower(one) : title_of(static_cast<char32_t>(c));
    else
      out += one;
    in_word = cased;
  }
  return out;
}

std::vector<byte_range> lines_of(std::string_view bytes, bool keep_ends) {
  std::vector<byte_range> lines;
  size_t start = 0;
  for (size_t at = 0; at < bytes.size();) {
    const char32_t c = character_at(bytes, at);
    size_t next = at + character_bytes(bytes, at);
    const bool ends = (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85
                      || c == 0x2028 || c == 0x2029;
    if (ends) {
      if (c == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      lines.push_back({start, keep_ends ? next : at});
      start = next;
    }
    at = next;
  }
  if (start < bytes.size()) lines.push_back({start, bytes.size()});
  return lines;
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (u_charType(static_cast<UChar32>(c))) {
  case U_UNASSIGNED:
  case U_CONTROL_CHAR:
  case U_FORMAT_CHAR:
  case U_SURROGATE:
  case U_PRIVATE_USE_CHAR:
  case U_LINE_SEPARATOR:
  case U_PARAGRAPH_SEPARATOR:
  case U_SPACE_SEPARATOR:
    return false;
  default:
    return true;
  }
}

text escaped(const text& x) {
  if (x.is_markup()) return x;
  const auto of_html = [](std::string_view bytes) {
    std::string out;
    constexpr std::string_view special = "&<>'\"";
    constexpr std::array<std::string_view, 5> means{"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    for (const char c : bytes)
      if (const auto i = special.find(c); i != std::string_view::npos)
        out += means[i];
      else
        out += c;
    return out;
  };
  return x.mapped(of_html).as_markup();
}

bool is_alphanumeric(char32_t c) {
  const auto u = static_cast<UChar32>(c);
  return (U_GET_GC_MASK(u) & U_GC_L_MASK) != 0
         || u_getIntPropertyValue(u, UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

} // namespace lamella::model::jinja
