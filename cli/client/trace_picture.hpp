/// The staircase of a pipeline as a picture.
#pragma once

#include "cli/client/trace.hpp"

#include <string>

namespace lamella::cli {

/// A slice of time; microseconds.
struct trace_window {
  double begin = 0, end = 0;
};

/// Two iterations in the middle of the recording, or so many microseconds from there on, or from
/// `at` on where that is not below 0; the whole recording where nothing ran.
trace_window choose_window(const trace_file& trace, double microseconds = 0, double at = -1);

/// SVG for a light ground: a row for each lane, a colour for each kind, a time axis, a legend.
std::string trace_picture(const trace_file& trace, const trace_window& window);

} // namespace lamella::cli
