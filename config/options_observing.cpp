/// The options of what a service tells of itself: log and traces.
#include "config/option_table.hpp"

#include <string_view>

namespace lamella::config {

std::string check_collector(const std::string& text) {
  if (text.empty()) return {};
  std::string_view rest = text;
  if (rest.starts_with("http://"))
    rest.remove_prefix(7);
  else if (rest.starts_with("https://"))
    rest.remove_prefix(8);
  else
    return "does not begin with http:// or https://, such as http://127.0.0.1:4318";
  for (const char c : rest)
    if (c <= ' ' || c >= 0x7f) return "has blanks, control or non-ASCII characters";
  if (rest.find_first_of("?#@") != rest.npos)
    return "has a query, fragment or user: a collector is scheme, host, port and path";
  const std::string host{rest.substr(0, rest.find('/'))};
  if (host.empty() || host.front() == ':') return "has no host";
  const bool has_port = host.find(':', host.rfind(']') + 1) != host.npos;
  const auto where = parse_address(has_port ? host : host + ":1");
  if (!where || where->port == 0) return "has no host and port that can be read";
  if (text.ends_with("/v1/traces"))
    return "ends with /v1/traces, which is added to it: leave that out";
  return {};
}

void add_observing(table& t) {
  t.choice<log_level>(
      "log.level", reload::live,
      {{log_level::error, "error"},
       {log_level::warn, "warn"},
       {log_level::info, "info"},
       {log_level::debug, "debug"},
       {log_level::trace, "trace"}},
      "Lowest severity that is logged.", [](settings & s) -> auto& { return s.log.level; });
  t.choice<log_format>(
      "log.format", reload::restart,
      {{log_format::automatic, "auto"}, {log_format::text, "text"}, {log_format::json, "json"}},
      "Format of log lines; auto: text on a terminal, json elsewhere.",
      [](settings & s) -> auto& { return s.log.format; });
  auto& endpoint = t.plain(
      "traces.endpoint", option_kind::text, reload::live,
      "Collector that gets a span of each request by OTLP over HTTP (POST URL/v1/traces), such as "
      "http://127.0.0.1:4318; empty: none.",
      [](settings & s) -> auto& { return s.traces.endpoint; });
  endpoint.allowed = check_collector;
  endpoint.maximum = 4096;
  t.integer(
      "traces.sample_percent", reload::live, 0, 100,
      "Share of requests without a traceparent that get spans; with one, its sampled flag decides.",
      [](settings & s) -> auto& { return s.traces.sample_percent; });
}

} // namespace lamella::config
