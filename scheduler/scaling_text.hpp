/// What an autoscaler saw, as text: one JSON object per line, so that the same looks can be judged
/// again elsewhere.
///
/// A line is either `{"settings":{...}}`, which holds for the looks behind it, or a look. Keys have
/// their units. Members of an object that are left out have their defaults.
#pragma once

#include "scheduler/scaling_look.hpp"

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

namespace lamella::scheduler {

/// A setting by its name, and its bounds.
struct scaling_setting_row {
  const char* name;
  std::variant<double scaling_settings::*, scaling_seconds scaling_settings::*,
               uint32_t scaling_settings::*>
      field;
  double least, most;
};

/// All settings.
std::span<const scaling_setting_row> scaling_setting_rows();

double value_of(const scaling_settings& settings, const scaling_setting_row& row);
/// `value` must be within the bounds; a whole number of steps is rounded to.
void set(scaling_settings& settings, const scaling_setting_row& row, double value);

/// A line that is neither a look nor settings; the text says why.
struct scaling_text_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Lines without the end of line.
std::string text_of(const scaling_look& look);
std::string text_of(const scaling_settings& settings);

/// Reads a line. Throws scaling_text_error, also for keys that it does not know.
std::variant<scaling_look, scaling_settings> scaling_line_of(std::string_view line);

} // namespace lamella::scheduler
