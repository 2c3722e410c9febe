/// "Did you mean": the nearest of some known words.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lamella::config {

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`. O(|a| |b|).
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate with the fewest edits, or nothing when even that one is too different to be meant:
/// more than a third of the longer word, and never more than 4. Words over 128 characters have no
/// neighbours.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

} // namespace lamella::config
