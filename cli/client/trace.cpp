#include "cli/client/trace.hpp"

#include "cli/client/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace lamella::cli {

namespace {

/// More than a server writes.
json_limits trace_limits() {
  json_limits limits;
  limits.array_items = size_t{1} << 19;
  limits.values = size_t{1} << 23;
  limits.text_bytes = size_t{256} << 20;
  return limits;
}

uint64_t whole(const json_value* x) { return static_cast<uint64_t>(std::max(number_or(x, 0), 0.)); }

trace_span span_of(const json_value& x) {
  trace_span span;
  span.name = text_or(x.find("name"), "?");
  span.kind = text_or(x.find("cat"), "other");
  span.begin = number_or(x.find("ts"), 0);
  span.end = span.begin + std::max(number_or(x.find("dur"), 0), 0.);
  span.iteration = whole(find_path(x, {"args", "iteration"}));
  span.number = whole(find_path(x, {"args", "number"}));
  return span;
}

/// Lanes by process and thread.
std::vector<trace_lane> lanes_of(const json_value& trace) {
  std::map<uint64_t, std::string> workers;
  std::map<std::pair<uint64_t, uint64_t>, trace_lane> lanes;
  for (const auto& x : items_of(trace, "traceEvents")) {
    const auto process = whole(x.find("pid")), thread = whole(x.find("tid"));
    const auto phase = text_or(x.find("ph"), ""), name = text_or(x.find("name"), "");
    if (phase == "X") lanes[{process, thread}].spans.push_back(span_of(x));
    if (phase == "M" && name == "process_name")
      workers[process] = text_or(find_path(x, {"args", "name"}), "");
    if (phase == "M" && name == "thread_name")
      lanes[{process, thread}].lane = text_or(find_path(x, {"args", "name"}), "");
  }
  std::vector<trace_lane> result;
  for (auto& [key, lane] : lanes) {
    lane.worker = workers[key.first];
    std::ranges::sort(lane.spans, [](const trace_span& a, const trace_span& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    result.push_back(std::move(lane));
  }
  return result;
}

} // namespace

trace_file read_trace(std::string_view text, const std::string& what) {
  json_value trace;
  try {
    trace = parse_json(text, trace_limits());
  } catch (const json_syntax_error& e) {
    throw command_error{exit_failure,
                        fmt::format("{} is no trace: {} at byte {}", what, e.what(), e.offset),
                        "'lamella trace -o FILE' writes one"};
  }
  const auto* other = trace.find("otherData");
  if (other == nullptr || trace.find("traceEvents") == nullptr)
    throw command_error{exit_failure, what + " is no trace of a 'lamella serve'",
                        "'lamella trace -o FILE' writes one"};
  trace_file x;
  x.model = text_or(other->find("model"), "");
  x.time = text_or(other->find("time"), "");
  x.seconds = number_or(other->find("seconds"), 0);
  x.lanes = lanes_of(trace);
  for (const auto& w : items_of(*other, "workers"))
    x.sources.push_back({text_or(w.find("seat"), "-"), text_or(w.find("clock"), "unknown"),
                         number_or(w.find("error_us"), 0), whole(w.find("spans")),
                         whole(w.find("dropped"))});
  for (const auto& w : items_of(*other, "left_out"))
    x.left_out.push_back(text_or(w.find("seat"), "-") + ": " + text_or(w.find("reason"), "?"));
  return x;
}

double trace_seconds(const std::string& text, const std::string& flag, double least, double most) {
  static const std::map<std::string, double> units{{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
  double number = 0;
  const auto* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  const auto unit = units.find(std::string{at, end});
  const auto seconds = unit == units.end() ? -1 : number * unit->second;
  if (error != std::errc{} || !(seconds >= least && seconds <= most))
    throw command_error{
        exit_usage, fmt::format("{}: '{}' is not a time of {} to {} s", flag, text, least, most),
        "write it as 2s or 500ms"};
  return seconds;
}

} // namespace lamella::cli
