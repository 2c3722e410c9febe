/// Names of requests and answers that clients see.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lamella::net {

/// `prefix` and 24 letters and digits from 128 bits of entropy: "chatcmpl-", "cmpl-", "req-",
/// "call_".
std::string make_response_id(std::string_view prefix, uint64_t high, uint64_t low);

} // namespace lamella::net
