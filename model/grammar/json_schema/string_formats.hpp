/// The values of `format` in JSON Schemas.
#pragma once

#include <cstdint>
#include <string_view>

namespace lamella::model {

/// A regular expression whose texts are all of that format; empty for formats that are not known.
std::string_view format_expression(std::string_view format);

/// Is it a format of the standard? Others mean nothing.
bool is_format(std::string_view format);

/// The same with fewer texts and without counts, for texts of up to simple_characters.
std::string_view simple_format_expression(std::string_view format);
constexpr uint32_t simple_characters = 63;

} // namespace lamella::model
