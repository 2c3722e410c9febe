#include "net/api/query.hpp"

#include "net/api/api_route.hpp"
#include "net/http/api_error.hpp"

#include <algorithm>

namespace lamella::net {

namespace {

constexpr size_t shown_max = 64;

struct parameter {
  std::string_view name, value;
};

/// Those of a query that have a name or a value.
std::vector<parameter> parameters_of(std::string_view query) {
  std::vector<parameter> all;
  while (!query.empty()) {
    const auto end = query.find('&');
    const auto pair = query.substr(0, end);
    query = end == query.npos ? std::string_view{} : query.substr(end + 1);
    const auto equals = pair.find('=');
    if (!pair.empty())
      all.push_back({pair.substr(0, equals),
                     equals == pair.npos ? std::string_view{} : pair.substr(equals + 1)});
  }
  return all;
}

/// Foreign text: printable ASCII and short.
std::string shown(std::string_view name, size_t most) {
  std::string out;
  for (const char c : name.substr(0, most)) out += c > ' ' && c < 0x7f ? c : '?';
  return out;
}

std::string quoted(std::string_view name) { return "'" + shown(name, shown_max) + "'"; }

api_error refused(std::string_view name, const std::string& takes) {
  auto error = unknown_parameter(shown(name, shown_max));
  error.message = "unknown query parameter " + quoted(name) + ": " + takes;
  return error;
}

} // namespace

void check_query(std::string_view query, std::span<const std::string_view> known,
                 std::string_view route) {
  std::string names;
  for (const auto name : known) names += (names.empty() ? "" : ", ") + std::string{name};
  const auto takes = std::string{route} + (names.empty() ? " takes no query" : " takes: " + names);
  std::vector<std::string_view> seen;
  for (const auto& x : parameters_of(query)) {
    if (std::find(known.begin(), known.end(), x.name) == known.end()) throw refused(x.name, takes);
    if (std::find(seen.begin(), seen.end(), x.name) != seen.end())
      throw invalid_value(std::string{x.name},
                          "query parameter " + quoted(x.name) + " is given twice: give it once");
    if (!percent_decode(x.value))
      throw invalid_value(std::string{x.name},
                          "query parameter " + quoted(x.name)
                              + " has a % that no two hexadecimal digits follow");
    seen.push_back(x.name);
  }
}

void refuse_stream_in_query(std::string_view query) {
  for (const auto& x : parameters_of(query))
    if (x.name == "stream" && x.value != "false")
      throw unsupported_parameter("stream", "a response that is kept is not streamed again: leave "
                                            "stream out of the query");
}

std::vector<std::string> unknown_in_query(std::string_view query) {
  constexpr size_t most = 16;
  std::vector<std::string> names;
  for (const auto& x : parameters_of(query)) {
    if (x.name == "beta" || x.name == "api-version") continue;
    auto name = "?" + shown(x.name, shown_max - 1);
    if (names.size() < most && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

} // namespace lamella::net
