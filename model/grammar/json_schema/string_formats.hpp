/// The values of `format` in JSON Schemas.
#pragma once

#include <string>
#include <string_view>

namespace lamella::model {

/// A regular expression whose texts are all of that format; empty for formats that are not known.
std::string_view format_expression(std::string_view format);

/// The formats that are known, for messages.
std::string format_names();

} // namespace lamella::model
