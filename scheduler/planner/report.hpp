/// Results as tables that people and scripts can read.
#pragma once

#include "scheduler/planner/cost/constants.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lamella::scheduler {

/// One published number and ours. `low` and `high` are what we promise
/// ourselves to hit; infinite where a number is shown without a target.
struct checked_number {
  std::string what; ///< with its id, as in L-Q14
  std::string paper;
  double ours = 0;
  double low = 0, high = 0;
  std::string unit;
  std::string note; ///< why a target is missed, or how to read it
  bool met() const { return ours >= low && ours <= high; }
};

/// A table of text; every row has a cell per column.
struct text_table {
  std::string heading;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct report {
  std::string title;
  std::vector<std::string> notes;
  std::vector<checked_number> numbers;
  std::vector<text_table> tables;
  /// Bars for a picture: label and value, in groups.
  std::vector<std::pair<std::string, double>> bars;
  std::string bars_title;
};

std::string markdown_of(const text_table& t);

/// Markdown; the constants come last, each with its source and whether it was fitted.
std::string markdown_of(const report& r, const constants& values);

/// Text as it may stand in SVG.
std::string escaped(const std::string& text);

/// The bars as SVG; empty without bars.
std::string svg_of(const report& r);

/// A number with `digits` behind the point.
std::string fixed(double x, int digits);
/// Four digits that count, no zeros behind them: 0.01, 14.5, 1895.
std::string brief(double x);

} // namespace lamella::scheduler
