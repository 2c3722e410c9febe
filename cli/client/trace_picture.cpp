#include "cli/client/trace_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace lamella::cli {

namespace {

constexpr double gutter = 190, plot = 1390, right = 20, head = 58, row = 30, bar = 22, foot = 66;
/// Narrower ones cannot be seen.
constexpr double thinnest = 0.15;
/// Digits of the small text are about so wide.
constexpr double digit = 6.2;

struct look {
  const char *key, *words, *colour, *ink;
};
constexpr std::array<look, 9> looks{{
    {"slice", "slice of a replica", "#3b6fb6", "#fff"},
    {"attend_previous", "attention, old positions", "#2a8f83", "#fff"},
    {"attend_new", "attention, new positions", "#e08a1e", "#000"},
    {"send", "send", "#8a4fb0", "#fff"},
    {"sample", "sample", "#c7374a", "#fff"},
    {"wait", "wait for another device", "#dfe3e8", "#5a6470"},
    {"iteration", "iteration", "#3b6fb6", "#fff"},
    {"other", "other work (pulls, offers)", "#94705a", "#fff"},
    {"idle", "nothing launched", "#fafbfc", "#5a6470"},
}};

const look& look_of(const trace_span& x) {
  for (const auto& each : looks)
    if (x.kind == each.key || x.name.starts_with(each.key)) return each;
  return looks[x.kind == "compute" ? 0 : 7];
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= ' ')
      out += c;
  }
  return out;
}

/// 1, 2 or 5 times a power of ten, so that there are about ten of them.
double step_of(double length) {
  const auto power = std::pow(10, std::floor(std::log10(std::max(length / 10, 1e-3))));
  for (const double x : {1., 2., 5.})
    if (x * power >= length / 10) return x * power;
  return 10 * power;
}

/// Where an iteration begins on the lane that has most of them.
std::vector<double> iteration_begins(const trace_file& trace) {
  std::vector<double> best;
  for (const auto& lane : trace.lanes) {
    std::vector<double> begins;
    for (const auto& x : lane.spans)
      if ((x.name == "slice 0" || x.name == "attend_previous 0" || x.name.starts_with("iteration"))
          && x.kind == "compute")
        begins.push_back(x.begin);
    if (begins.size() > best.size()) best = std::move(begins);
  }
  return best;
}

/// What is under way of a picture.
class painter {
public:
  explicit painter(const trace_window& window) : window_{window} {}

  double x_of(double time) const {
    return gutter
           + (std::clamp(time, window_.begin, window_.end) - window_.begin)
                 / (window_.end - window_.begin) * plot;
  }

  void text(double x, double y, const std::string& what, const std::string& style = {}) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, style, escaped(what));
  }

  void axis(double bottom) {
    const auto step = step_of(window_.end - window_.begin);
    for (double t = std::ceil(window_.begin / step) * step; t <= window_.end; t += step) {
      out += fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#c9d0d8\"/>\n", x_of(t),
                         head - 6, bottom);
      text(x_of(t), head - 12,
           fmt::format("{:.{}f}", t / 1e3,
                       step >= 1000  ? 0
                       : step >= 100 ? 1
                                     : 2),
           " text-anchor=\"middle\" fill=\"#5a6470\"");
    }
  }

  void span(const trace_span& x, double top) {
    const auto left = x_of(x.begin), width = x_of(x.end) - left;
    if (x.end <= window_.begin || x.begin >= window_.end || width < thinnest) return;
    const auto& how = look_of(x);
    // Neighbours of one colour are told apart by their shade.
    const char* shade = x.kind == "compute" && x.number % 2 == 1 ? " fill-opacity=\".78\"" : "";
    out += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" "
                       "fill=\"{}\"{}><title>{}, iteration {}: {:.1f} µs</title></rect>\n",
                       left, top, width, bar, how.colour, shade, escaped(x.name), x.iteration,
                       x.end - x.begin);
    const auto number = std::to_string(x.number);
    if (x.kind == "compute" && width > digit * static_cast<double>(number.size()) + 3)
      text(left + width / 2, top + bar / 2 + 4, number,
           fmt::format(" text-anchor=\"middle\" fill=\"{}\" font-size=\"10\"", how.ink));
  }

  std::string out;

private:
  trace_window window_;
};

void draw_lane(painter& to, const trace_lane& lane, double top) {
  to.text(8, top + 10, lane.worker, " font-weight=\"600\"");
  to.text(8, top + 22, lane.lane, " fill=\"#5a6470\" font-size=\"10\"");
  for (const auto& x : lane.spans) to.span(x, top);
}

void draw_legend(painter& to, const trace_file& trace, double top) {
  double x = gutter;
  for (const auto& each : looks) {
    const bool seen = std::ranges::any_of(trace.lanes, [&](const trace_lane& lane) {
      return std::ranges::any_of(lane.spans, [&](const auto& s) { return &look_of(s) == &each; });
    });
    if (!seen) continue;
    to.out += fmt::format("<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"14\" height=\"14\" fill=\"{}\" "
                          "stroke=\"#aab3bd\"/>\n",
                          x, top, each.colour);
    to.text(x + 20, top + 11, each.words);
    x += 40 + 6.6 * static_cast<double>(std::string_view{each.words}.size());
  }
}

} // namespace

trace_window choose_window(const trace_file& trace, double microseconds, double at) {
  constexpr size_t shown = 2;
  auto begins = iteration_begins(trace);
  if (at >= 0 && microseconds > 0) return {at, at + microseconds};
  if (at >= 0) std::erase_if(begins, [at](double x) { return x < at; });
  const auto whole = trace.seconds > 0 ? trace.seconds * 1e6 : 1;
  if (begins.empty()) return {0, microseconds > 0 ? microseconds : whole};
  const auto middle = at < 0 && begins.size() > shown ? (begins.size() - shown) / 2 : 0;
  const auto begin = begins[middle];
  if (microseconds > 0) return {begin, begin + microseconds};
  const auto last = std::min(middle + shown, begins.size() - 1);
  const auto end = last > middle ? begins[last] : whole;
  return {begin, std::max(end, begin + 1)};
}

std::string trace_picture(const trace_file& trace, const trace_window& window) {
  painter paint{window};
  const auto rows = static_cast<double>(std::max<size_t>(trace.lanes.size(), 1));
  const auto bottom = head + rows * row;
  const auto width = gutter + plot + right, height = bottom + foot;
  paint.out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"system-ui,sans-serif\" font-size=\"12\" fill=\"#1c2733\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height);
  paint.text(8, 20, "The pipeline of " + (trace.model.empty() ? "a service" : trace.model),
             " font-size=\"15\" font-weight=\"600\"");
  paint.text(gutter + plot, 20,
             fmt::format("{:.2f} to {:.2f} ms of a recording of {} s, {}", window.begin / 1e3,
                         window.end / 1e3, trace.seconds, trace.time),
             " text-anchor=\"end\" fill=\"#5a6470\"");
  paint.text(8, head - 12, "milliseconds", " fill=\"#5a6470\"");
  paint.axis(bottom);
  double top = head;
  for (const auto& lane : trace.lanes) {
    draw_lane(paint, lane, top);
    top += row;
  }
  if (trace.lanes.empty()) paint.text(gutter, head + 16, "Nothing ran while this was recorded.");
  draw_legend(paint, trace, bottom + 14);
  paint.text(
      gutter, bottom + 52,
      "Numbers are slices of a replica and layers of attention. Sends lie within their slice.",
      " fill=\"#5a6470\"");
  return paint.out + "</svg>\n";
}

} // namespace lamella::cli
