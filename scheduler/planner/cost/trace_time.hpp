/// Dates and times of traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lamella::scheduler {

/// Microseconds from 1970-01-01 00:00:00 UTC to a time like "2023-11-16 18:15:46.6805900": a day of
/// the civil calendar, a blank or T, hour:minute:second, decimal digits behind a point (rounded to
/// whole microseconds), and nothing, Z or a zone such as +02:00. Of the years 1970 to 9999; second
/// 60 is the first of the next minute. Nothing where the text is anything else.
std::optional<int64_t> microseconds_of(std::string_view text);

} // namespace lamella::scheduler
