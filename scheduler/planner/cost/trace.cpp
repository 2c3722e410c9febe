#include "scheduler/planner/cost/trace.hpp"

#include "scheduler/planner/cost/trace_time.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <ostream>
#include <sstream>

namespace lamella::scheduler {

namespace {

constexpr double seconds_max = 1e9;

std::vector<uint32_t> blocks_of(const std::string& text, size_t line) {
  std::vector<uint32_t> blocks;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    uint32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc{}) throw table_error{line, "hash_ids: not a list of whole numbers"};
    blocks.push_back(id);
    at = next;
  }
  return blocks;
}

/// The number behind `"key":` in one JSON line; Mooncake's rows are flat objects of numbers and
/// one list, so a whole parser is not needed to find them.
std::string json_field(const std::string& text, const std::string& key, size_t line) {
  const auto at = text.find("\"" + key + "\"");
  const auto colon = at == std::string::npos ? at : text.find(':', at);
  if (colon == std::string::npos) throw table_error{line, "no member \"" + key + "\""};
  auto first = text.find_first_not_of(" \t", colon + 1);
  if (first == std::string::npos) throw table_error{line, "\"" + key + "\" has no value"};
  if (text[first] == '[') {
    const auto close = text.find(']', first);
    if (close == std::string::npos) throw table_error{line, "\"" + key + "\": no closing ]"};
    return text.substr(first + 1, close - first - 1);
  }
  return text.substr(first, text.find_first_of(",} \t", first) - first);
}

double number_of(const std::string& text, const std::string& key, size_t line, double least,
                 double most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= least && value <= most)
      || !std::isfinite(value))
    throw table_error{line, key + ": '" + text.substr(0, 40) + "' is not a number within "
                                + std::to_string(static_cast<long long>(least)) + " to "
                                + std::to_string(static_cast<long long>(most))};
  return value;
}

uint32_t tokens_of(const std::string& text, const std::string& key, size_t line, uint32_t most) {
  const auto value = number_of(text, key, line, 1, most);
  if (value != std::floor(value)) throw table_error{line, key + ": not a whole number"};
  return static_cast<uint32_t>(value);
}

void check_count(size_t count, size_t line, const trace_limits& limits) {
  if (count >= limits.requests_max)
    throw table_error{line, "more than " + std::to_string(limits.requests_max) + " requests"};
}

request_trace read_json_lines(std::istream& in, const trace_limits& limits) {
  request_trace trace;
  size_t line = 0;
  for (std::string text; read_table_line(in, text, ++line);) {
    const auto end = text.find_last_not_of(" \t\r");
    if (end == std::string::npos) continue;
    if (text[text.find_first_not_of(" \t")] != '{' || text[end] != '}')
      throw table_error{line, "not a whole JSON object"};
    check_count(trace.size(), line, limits);
    trace.push_back(
        {number_of(json_field(text, "timestamp", line), "timestamp", line, 0, seconds_max * 1e3)
             / 1e3,
         tokens_of(json_field(text, "input_length", line), "input_length", line, limits.tokens_max),
         tokens_of(json_field(text, "output_length", line), "output_length", line,
                   limits.tokens_max),
         text.find("\"hash_ids\"") == std::string::npos
             ? std::vector<uint32_t>{}
             : blocks_of(json_field(text, "hash_ids", line), line)});
  }
  return trace;
}

/// Seconds of each row's date since that of the first one; whole microseconds.
class dated_rows {
public:
  double seconds_of(const std::string& text, size_t line) {
    const auto time = microseconds_of(text);
    if (!time)
      throw table_error{line,
                        "'" + text.substr(0, 40) + "' is not a time like 2023-11-16 18:15:46"};
    if (!first_) first_ = time;
    return static_cast<double>(*time - *first_) / 1e6;
  }

private:
  std::optional<int64_t> first_;
};

request_trace read_rows(std::istream& in, const trace_limits& limits) {
  csv_reader csv{in};
  const bool azure = csv.find("ContextTokens").has_value();
  const auto arrival = csv.column(azure ? "TIMESTAMP" : "arrival_s"),
             prompt = csv.column(azure ? "ContextTokens" : "prompt_tokens"),
             output = csv.column(azure ? "GeneratedTokens" : "output_tokens");
  const auto blocks = csv.find("hash_ids");
  request_trace trace;
  dated_rows dates;
  while (csv.next()) {
    check_count(trace.size(), csv.line(), limits);
    trace.push_back({azure ? dates.seconds_of(csv.text(arrival), csv.line())
                           : csv.number(arrival, 0, seconds_max),
                     static_cast<uint32_t>(csv.whole(prompt, 1, limits.tokens_max)),
                     static_cast<uint32_t>(csv.whole(output, 1, limits.tokens_max)),
                     blocks ? blocks_of(csv.text(*blocks), csv.line()) : std::vector<uint32_t>{}});
  }
  return trace;
}

} // namespace

request_trace read_trace(std::istream& in, const trace_limits& limits) {
  pass_over_mark(in);
  auto trace = in.peek() == '{' ? read_json_lines(in, limits) : read_rows(in, limits);
  if (trace.empty()) throw table_error{"the trace has no requests"};
  std::stable_sort(trace.begin(), trace.end(),
                   [](const auto& a, const auto& b) { return a.arrival_s < b.arrival_s; });
  for (const auto first = trace.front().arrival_s; auto& x : trace) x.arrival_s -= first;
  return trace;
}

void write_trace(std::ostream& out, const request_trace& trace) {
  const bool blocks = std::any_of(trace.begin(), trace.end(),
                                  [](const auto& x) { return !x.prefix_blocks.empty(); });
  out << "arrival_s,prompt_tokens,output_tokens" << (blocks ? ",hash_ids" : "") << '\n';
  for (const auto& x : trace) {
    char time[48];
    *std::to_chars(time, time + sizeof time - 1, x.arrival_s).ptr = 0; // reads back the same
    out << time << ',' << x.prompt_tokens << ',' << x.output_tokens;
    if (blocks) {
      out << ',';
      for (size_t i = 0; i < x.prefix_blocks.size(); ++i)
        out << (i ? " " : "") << x.prefix_blocks[i];
    }
    out << '\n';
  }
}

trace_summary summary_of(const request_trace& trace) {
  trace_summary s{trace.size()};
  for (const auto& x : trace) {
    s.prompt_mean += x.prompt_tokens;
    s.output_mean += x.output_tokens;
    s.span_s = std::max(s.span_s, x.arrival_s);
  }
  if (s.requests > 0) {
    s.prompt_mean /= static_cast<double>(s.requests);
    s.output_mean /= static_cast<double>(s.requests);
  }
  return s;
}

} // namespace lamella::scheduler
