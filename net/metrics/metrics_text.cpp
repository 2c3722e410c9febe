#include "net/metrics/metrics_text.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string_view>

namespace lamella::net {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

void escape(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '"' && quotes)
      out += "\\\"";
    else
      out += c;
  }
}

void sample(std::string& out, std::string_view name, const ClientMetric& metric,
            std::string_view extra_name, std::string_view extra, double value) {
  out += name;
  char separator = '{';
  const auto label = [&](std::string_view key, std::string_view text) {
    out += separator;
    separator = ',';
    out.append(key).append("=\"");
    escape(out, text, true);
    out += '"';
  };
  for (const auto& each : metric.label) label(each.name, each.value);
  if (!extra_name.empty()) label(extra_name, extra);
  if (separator == ',') out += '}';
  out.append(" ").append(number(value)).append("\n");
}

const char* type_name(MetricType type) {
  switch (type) {
  case MetricType::Counter:
    return "counter";
  case MetricType::Gauge:
    return "gauge";
  case MetricType::Histogram:
    return "histogram";
  case MetricType::Summary:
    return "summary";
  case MetricType::Untyped:
    break;
  }
  return "untyped";
}

void write_family(std::string& out, const MetricFamily& family, bool openmetrics) {
  std::string_view name = family.name;
  if (openmetrics && family.type == MetricType::Counter && name.ends_with("_total"))
    name.remove_suffix(6);
  out.append("# HELP ").append(name).append(" ");
  escape(out, family.help, openmetrics);
  out.append("\n# TYPE ").append(name).append(" ").append(type_name(family.type)).append("\n");
  for (const ClientMetric& metric : family.metric) {
    if (family.type == MetricType::Histogram) {
      const std::string bucket = family.name + "_bucket";
      const auto& histogram = metric.histogram;
      bool infinite = false;
      for (const auto& each : histogram.bucket) {
        sample(out, bucket, metric, "le", number(each.upper_bound),
               static_cast<double>(each.cumulative_count));
        infinite = std::isinf(each.upper_bound);
      }
      const auto count = static_cast<double>(histogram.sample_count);
      if (!infinite) sample(out, bucket, metric, "le", "+Inf", count);
      sample(out, family.name + "_sum", metric, {}, {}, histogram.sample_sum);
      sample(out, family.name + "_count", metric, {}, {}, count);
    } else {
      sample(out, family.name, metric, {}, {},
             family.type == MetricType::Counter ? metric.counter.value : metric.gauge.value);
    }
  }
}

std::string write(const std::vector<MetricFamily>& families, bool openmetrics) {
  std::string out;
  for (const MetricFamily& family : families)
    if (!family.metric.empty()) write_family(out, family, openmetrics);
  return out;
}

MetricFamily single(std::string name, std::string help, MetricType type, double value) {
  ClientMetric metric;
  metric.counter.value = value;
  metric.gauge.value = value;
  return {std::move(name), std::move(help), type, {std::move(metric)}};
}

double open_descriptors() {
  DIR* directory = opendir("/proc/self/fd");
  if (!directory) return 0;
  double count = -3; // ".", ".." and the directory itself
  while (readdir(directory)) ++count;
  closedir(directory);
  return count;
}

} // namespace

std::string prometheus_text(const std::vector<MetricFamily>& families) {
  return write(families, false);
}

std::string openmetrics_text(const std::vector<MetricFamily>& families) {
  return write(families, true) + "# EOF\n";
}

std::vector<MetricFamily> process_families() {
  // Fields of /proc/self/stat after the program name, which may contain anything but ends at the
  // last parenthesis: 14 utime, 15 stime, 22 starttime (ticks), 23 vsize (bytes), 24 rss (pages).
  std::ifstream file("/proc/self/stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  std::istringstream fields(all.substr(all.rfind(')') + 1));
  std::vector<double> values{0, 0};
  std::string state;
  fields >> state;
  for (double value = 0; fields >> value;) values.push_back(value);
  const auto field = [&](size_t number_from_1) {
    // values[2] is field 4, the first after the state.
    const size_t index = number_from_1 - 2;
    return index < values.size() ? values[index] : 0;
  };
  double boot = 0;
  std::ifstream stat("/proc/stat");
  for (std::string line; std::getline(stat, line);)
    if (line.starts_with("btime ")) boot = std::strtod(line.c_str() + 6, nullptr);
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  return {
      single("process_cpu_seconds_total", "User and system time spent.", MetricType::Counter,
             (field(14) + field(15)) / ticks),
      single("process_max_fds", "Limit of open file descriptors.", MetricType::Gauge,
             files.rlim_cur == RLIM_INFINITY ? INFINITY : static_cast<double>(files.rlim_cur)),
      single("process_open_fds", "Open file descriptors.", MetricType::Gauge, open_descriptors()),
      single("process_resident_memory_bytes", "Resident memory.", MetricType::Gauge,
             field(24) * page),
      single("process_start_time_seconds", "Start time, seconds since 1970.", MetricType::Gauge,
             boot + field(22) / ticks),
      single("process_virtual_memory_bytes", "Virtual memory.", MetricType::Gauge, field(23)),
  };
}

} // namespace lamella::net
