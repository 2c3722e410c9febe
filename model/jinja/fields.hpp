/// One value of a format, such as %5d or {:>5}.
#pragma once

#include "model/jinja/builtins.hpp"

namespace lamella::model::jinja {

inline constexpr int64_t width_max = 100'000;
inline constexpr int precision_max = 300;

/// How one value is to be written.
struct field_style {
  std::string fill = " ";
  char align = 0; ///< < > ^ or = (between sign and digits); 0: as the type has it
  char sign = '-';
  bool prefix = false; ///< 0x, 0o and 0b
  char group = 0;      ///< between groups of three digits
  int64_t width = 0;
  int precision = -1;
  char type = 0;
};

/// Reads digits at `at`; fails above `most`.
int64_t number_at(heap& h, std::string_view bytes, size_t& at, int64_t most);

/// A value of `%`; into markup, texts go escaped.
text percent_field(heap& h, const value& x, field_style style, bool escapes);

/// format(x, spec) of Python.
text formatted(heap& h, const value& x, const std::string& spec);

} // namespace lamella::model::jinja
