#include "cli/bench/load/curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace lamella::cli {

namespace {

constexpr double width = 860, left = 78, right = 150, head = 52, plot = 200, between = 66;
constexpr const char* median_colour = "#3b6fb6";
constexpr const char* tail_colour = "#c7374a";
constexpr const char* good_colour = "#2a8f83";

/// 1, 2 or 5 times a power of ten, so that there are some five of them up to `most`.
double step_of(double most) {
  const auto power = std::pow(10, std::floor(std::log10(most / 5)));
  for (const double x : {1., 2., 5.})
    if (x * power >= most / 5) return x * power;
  return 10 * power;
}

struct curve_point {
  double x, y;
  std::string label;
};
struct curve_line {
  std::string name;
  const char* colour;
  std::vector<curve_point> points;
};

/// One set of axes from 0 to a bit beyond the greatest values.
class panel {
public:
  panel(std::string& out, double top, std::string title, const char* x_words, double x_most,
        double y_most)
      : out_{out}, top_{top}, x_most_{std::max(x_most, 1e-3) * 1.05}, y_most_{std::max(y_most, 1e-3)
                                                                              * 1.08} {
    text(left, top - 12, title, "font-weight=\"600\"");
    for (double v = 0, step = step_of(y_most_); v <= y_most_; v += step) {
      path(fmt::format("M{:.1f} {:.1f}H{:.1f}", left, y(v), width - right), "#dfe3e8", "");
      text(left - 8, y(v) + 4, fmt::format("{:g}", v), "text-anchor=\"end\" fill=\"#5a6470\"");
    }
    for (double v = 0, step = step_of(x_most_); v <= x_most_; v += step)
      text(x(v), top + plot + 17, fmt::format("{:g}", v),
           "text-anchor=\"middle\" fill=\"#5a6470\"");
    text(width - right, top + plot + 33, x_words, "text-anchor=\"end\" fill=\"#5a6470\"");
    path(fmt::format("M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}", left, top, top + plot, width - right),
         "#5a6470", "");
  }

  void draw(const curve_line& line, double legend_row) {
    std::string way;
    for (const auto& p : line.points)
      way += fmt::format("{}{:.1f} {:.1f}", way.empty() ? "M" : "L", x(p.x), y(p.y));
    if (!way.empty()) path(way, line.colour, " stroke-width=\"2\"");
    for (const auto& p : line.points) {
      out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n", x(p.x),
                          y(p.y), line.colour);
      if (!p.label.empty())
        text(x(p.x), y(p.y) - 8, p.label,
             "text-anchor=\"middle\" fill=\"#5a6470\" font-size=\"10\"");
    }
    const double row = top_ + 8 + legend_row * 18;
    path(fmt::format("M{:.1f} {:.1f}h18", width - right + 14, row), line.colour,
         " stroke-width=\"2\"");
    text(width - right + 38, row + 4, line.name, "");
  }

  void limit(double value, double legend_row) {
    const double row = top_ + 8 + legend_row * 18;
    constexpr const char* dashes = " stroke-dasharray=\"6 4\"";
    if (value <= y_most_)
      path(fmt::format("M{:.1f} {:.1f}H{:.1f}", left, y(value), width - right), "#94705a", dashes);
    path(fmt::format("M{:.1f} {:.1f}h18", width - right + 14, row), "#94705a", dashes);
    text(width - right + 38, row + 4, fmt::format("limit {:g} ms", value), "");
  }

private:
  double x(double v) const { return left + v / x_most_ * (width - left - right); }
  double y(double v) const { return top_ + plot - v / y_most_ * plot; }
  void text(double at, double down, const std::string& what, const char* style) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", at, down, style, what);
  }
  void path(const std::string& way, const char* colour, const char* style) {
    out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\"{}/>\n", way, colour, style);
  }

  std::string& out_;
  double top_, x_most_, y_most_;
};

using figure = std::function<double(const bench_run&)>;

curve_line line_of(const std::vector<bench_run>& runs, std::string name, const char* colour,
                   const figure& x, const figure& y, bool labels) {
  curve_line line{std::move(name), colour, {}};
  for (const auto& run : runs)
    if (!std::isnan(y(run)))
      line.points.push_back(
          {x(run), y(run), labels ? fmt::format("{:g}/s", run.options.rate.value_or(0)) : ""});
  return line;
}

double most_of(const std::vector<const curve_line*>& lines, double curve_point::*which) {
  double most = 0;
  for (const auto* line : lines)
    for (const auto& p : line->points) most = std::max(most, p.*which);
  return most;
}

/// Median and P99 of one latency over the throughput.
void draw_latency(std::string& out, const std::vector<bench_run>& runs, double top,
                  const std::string& title, latency_summary bench_summary::*latency,
                  const char* limit) {
  const figure throughput = [](const bench_run& r) { return r.summary.output_throughput; };
  const auto median = line_of(
                 runs, "median", median_colour, throughput,
                 [&](const bench_run&r) { return (r.summary.*latency).median; }, false),
             tail = line_of(
                 runs, "P99", tail_colour, throughput,
                 [&](const bench_run&r) { return (r.summary.*latency).p99; }, true);
  panel axes{out,
             top,
             title,
             "output tokens per second",
             most_of({&median, &tail}, &curve_point::x),
             most_of({&median, &tail}, &curve_point::y)};
  axes.draw(tail, 0);
  axes.draw(median, 1);
  if (runs.empty()) return;
  const auto& limits = runs.front().options.goodput.ms;
  if (const auto found = limits.find(limit); found != limits.end()) axes.limit(found->second, 2);
}

void draw_rates(std::string& out, const std::vector<bench_run>& runs, double top) {
  const figure rate = [](const bench_run& r) { return r.options.rate.value_or(0); };
  const auto answered = line_of(
                 runs, "answered", median_colour, rate,
                 [](const bench_run&r) { return r.summary.request_throughput; }, false),
             good = line_of(
                 runs, "within limits", good_colour, rate,
                 [](const bench_run&r) { return r.summary.goodput; }, false);
  panel axes{out,
             top,
             "Answers and goodput (requests per second)",
             "requests per second that arrive",
             most_of({&answered}, &curve_point::x),
             most_of({&answered, &good}, &curve_point::y)};
  axes.draw(answered, 0);
  const bool limited = !runs.empty() && !runs.front().options.goodput.empty();
  if (limited) axes.draw(good, 1);
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

} // namespace

std::string latency_curve(const std::vector<bench_run>& runs) {
  std::vector<bench_run> shown;
  for (const auto& run : runs)
    if (run.summary.completed > 0) shown.push_back({run.options, {}, run.summary});
  const double height = head + 3 * plot + 2 * between + 48;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"{2:.0f}\" y=\"20\" "
      "font-size=\"14\" font-weight=\"600\">Latency against throughput: {3}</text>\n",
      width, height, left, shown.empty() ? "no answers" : escaped(shown.front().options.model));
  double top = head;
  draw_latency(out, shown, top, "Time to first token (ms)", &bench_summary::ttft, "ttft");
  top += plot + between;
  draw_latency(out, shown, top, "Time per output token (ms)", &bench_summary::tpot, "tpot");
  top += plot + between;
  draw_rates(out, shown, top);
  return out + "</svg>\n";
}

std::string sweep_head(const bench_serve_options& options) {
  return fmt::format("{:>9} {:>9} {:>7} {:>10} {:>20} {:>20}{}\n", "arrivals", "answers", "failed",
                     "output", "TTFT P50, P99", "TPOT P50, P99",
                     options.goodput.empty() ? "" : "    goodput")
         + fmt::format("{:>9} {:>9} {:>7} {:>10} {:>20} {:>20}{}\n", "req/s", "req/s", "", "tok/s",
                       "ms", "ms", options.goodput.empty() ? "" : "      req/s");
}

std::string sweep_row(const bench_run& run) {
  const auto& x = run.summary;
  const auto pair = [](const latency_summary& s) {
    return s.count == 0 ? std::string{"-"} : fmt::format("{:.1f}, {:.1f}", s.median, s.p99);
  };
  std::string row =
      fmt::format("{:>9g} {:>9.2f} {:>7} {:>10.1f} {:>20} {:>20}", run.options.rate.value_or(0),
                  x.request_throughput, x.failed, x.output_throughput, pair(x.ttft), pair(x.tpot));
  if (!run.options.goodput.empty()) row += fmt::format(" {:>10.2f}", x.goodput);
  if (x.nine_slos) row += *x.nine_slos ? "  nine SLOs kept" : "  nine SLOs broken";
  return row + "\n";
}

} // namespace lamella::cli
