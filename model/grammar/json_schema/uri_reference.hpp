/// URI references, as `$id` and `$ref` have them.
#pragma once

#include <string>
#include <string_view>

namespace lamella::model {

/// What `reference` names where `base` is the base URI (RFC 3986, section 5.2), without its
/// fragment. A base without a scheme is taken as it is.
std::string resolved_uri(std::string_view base, std::string_view reference);

/// What is behind the first `#`; empty where there is none.
std::string_view fragment_of(std::string_view reference);

} // namespace lamella::model
