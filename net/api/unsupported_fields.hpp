/// Known fields of request bodies that are not supported.
#pragma once

#include "base/json_reader.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// A known field that is not supported, and its values without effect.
struct unsupported_field {
  std::string_view name;
  std::string_view harmless; ///< JSON texts that mean "off", separated by blanks; null always does
};

/// Rejects those with a value that has an effect.
void refuse_unsupported(json_object_reader& body, std::span<const unsupported_field> fields);

/// Fields of this and other servers that would change the answer, on all generating routes.
/// Silence would be a lie.
std::span<const unsupported_field> generation_unsupported();

/// Names with commas between them, for a header of the answer. Names with other characters than
/// visible ASCII are left out, and so is what is beyond 1 KiB. Cost: linear.
std::string header_list(const std::vector<std::string>& names);

} // namespace lamella::net
