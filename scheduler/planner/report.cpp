#include "scheduler/planner/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lamella::scheduler {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

std::string markdown_of(const text_table& t) {
  std::vector<size_t> widths;
  for (const auto& c : t.columns) widths.push_back(c.size());
  for (const auto& row : t.rows)
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text = t.heading.empty() ? "" : "\n## " + t.heading + "\n\n";
  const auto line = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i)
      text += (i ? " | " : "| ") + cells[i] + std::string(widths[i] - cells[i].size(), ' ');
    text += " |\n";
  };
  line(t.columns);
  for (const auto w : widths) text += "|" + std::string(w + 2, '-');
  text += "|\n";
  for (const auto& row : t.rows) line(row);
  return text;
}

std::string fixed(double x, int digits) {
  if (std::isnan(x)) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, x);
  return text;
}

std::string brief(double x) {
  char text[64];
  std::snprintf(text, sizeof text, std::abs(x) >= 1000 ? "%.0f" : "%.4g", x);
  return text;
}

std::string markdown_of(const report& r, const constants& values) {
  auto text = "# " + r.title + "\n";
  for (const auto& note : r.notes) text += "\n" + note + "\n";
  if (!r.numbers.empty()) {
    text_table t{"Published numbers", {"number", "paper", "ours", "target", "met", "note"}, {}};
    for (const auto& x : r.numbers) {
      const bool target = std::isfinite(x.low) && std::isfinite(x.high);
      const auto size = std::abs(target ? x.high : x.ours);
      const int digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
      t.rows.push_back(
          {x.what, x.paper, fixed(x.ours, digits) + x.unit,
           target ? fixed(x.low, digits) + " to " + fixed(x.high, digits) + x.unit : "-",
           !target   ? "-"
           : x.met() ? "yes"
                     : "NO",
           x.note});
    }
    text += markdown_of(t);
  }
  for (const auto& t : r.tables) text += markdown_of(t);
  text_table t{"Constants", {"constant", "value", "unit", "kind", "source"}, {}};
  for (const auto& row : constant_rows) {
    char value[32];
    std::snprintf(value, sizeof value, "%g", values.*row.field);
    t.rows.push_back({std::string{row.name}, value, std::string{row.unit},
                      std::string{name_of(row.kind)}, std::string{row.source}});
  }
  return text + markdown_of(t);
}

std::string svg_of(const report& r) {
  if (r.bars.empty()) return {};
  constexpr int row = 22, label = 260, room = 460;
  double most = 0;
  for (const auto& [name, value] : r.bars) most = std::max(most, value);
  const int height = 50 + row * static_cast<int>(r.bars.size());
  auto text = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\""
              + std::to_string(label + room + 90) + "\" height=\"" + std::to_string(height)
              + "\" font-family=\"sans-serif\" font-size=\"13\">\n<text x=\"10\" y=\"22\" "
                "font-weight=\"bold\">"
              + escaped(r.bars_title) + "</text>\n";
  int y = 40;
  for (const auto& [name, value] : r.bars) {
    const auto width = most > 0 ? std::max(0.0, value) / most * room : 0;
    text += "<text x=\"" + std::to_string(label - 8) + "\" y=\"" + std::to_string(y + 13)
            + "\" text-anchor=\"end\">" + escaped(name) + "</text><rect x=\""
            + std::to_string(label) + "\" y=\"" + std::to_string(y) + "\" width=\""
            + fixed(width, 1) + "\" height=\"16\" fill=\"#4878a8\"/><text x=\""
            + fixed(label + width + 6, 1) + "\" y=\"" + std::to_string(y + 13) + "\">"
            + fixed(value, 2) + "</text>\n";
    y += row;
  }
  return text + "</svg>\n";
}

} // namespace lamella::scheduler
