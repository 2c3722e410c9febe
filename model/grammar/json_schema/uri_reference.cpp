#include "model/grammar/json_schema/uri_reference.hpp"

#include <algorithm>

namespace lamella::model {

namespace {

/// A part that is absent is null, and not the same as an empty one.
struct uri_parts {
  std::string_view scheme, authority, path, query; // with their marks: "http:", "//host", "?a"
};

bool is_scheme(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

uri_parts parts_of(std::string_view text) {
  uri_parts parts;
  text = text.substr(0, text.find('#'));
  if (const auto colon = text.find(':'); colon != text.npos && is_scheme(text.substr(0, colon))) {
    parts.scheme = text.substr(0, colon + 1);
    text.remove_prefix(colon + 1);
  }
  if (text.starts_with("//")) {
    const auto end = std::min(text.find_first_of("/?", 2), text.size());
    parts.authority = text.substr(0, end);
    text.remove_prefix(end);
  }
  const auto mark = std::min(text.find('?'), text.size());
  parts.path = text.substr(0, mark);
  parts.query = text.substr(mark);
  return parts;
}

/// Without `.` and `..` (RFC 3986, section 5.2.4).
std::string without_dots(std::string_view path) {
  std::string out;
  const bool is_absolute = path.starts_with('/');
  const auto drop_last = [&] {
    const auto slash = out.find_last_of('/');
    out.resize(slash == out.npos ? 0 : slash);
  };
  while (!path.empty()) {
    const auto length = std::min(path.find('/', 1), path.size());
    const auto segment = path.substr(0, length);
    const auto name = segment.substr(segment.starts_with('/') ? 1 : 0);
    path.remove_prefix(length);
    if (name == "..") drop_last();
    if (name != "." && name != "..")
      out += segment;
    else if (path.empty())
      out += '/';
  }
  if (!is_absolute && out.starts_with('/')) out.erase(0, 1);
  return out;
}

} // namespace

std::string resolved_uri(std::string_view base, std::string_view reference) {
  const auto from = parts_of(base);
  auto to = parts_of(reference);
  std::string path;
  if (!to.scheme.empty()) {
    path = to.authority.empty() ? std::string(to.path) : without_dots(to.path);
  } else if (!to.authority.empty()) {
    path = without_dots(to.path);
  } else if (to.path.empty()) {
    path = from.path;
    if (to.query.empty()) to.query = from.query;
  } else if (to.path.starts_with('/')) {
    path = without_dots(to.path);
  } else {
    const auto slash = from.path.find_last_of('/');
    const auto folder =
        slash == from.path.npos ? std::string_view{} : from.path.substr(0, slash + 1);
    path = without_dots(std::string(folder.empty() && !from.authority.empty() ? "/" : folder)
                        + std::string(to.path));
  }
  const bool is_absolute = !to.scheme.empty();
  std::string out(is_absolute ? to.scheme : from.scheme);
  out += is_absolute || !to.authority.empty() ? to.authority : from.authority;
  return out + path + std::string(to.query);
}

std::string_view fragment_of(std::string_view reference) {
  const auto mark = reference.find('#');
  return mark == reference.npos ? std::string_view{} : reference.substr(mark + 1);
}

} // namespace lamella::model
