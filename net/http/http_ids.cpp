#include "net/http/http_ids.hpp"

namespace lamella::net {

std::string make_response_id(std::string_view prefix, uint64_t high, uint64_t low) {
  constexpr std::string_view letters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string id(prefix);
  for (uint64_t part : {high, low})
    for (int i = 0; i < 12; ++i) {
      id += letters[part % letters.size()];
      part /= letters.size();
    } // 62^12 exceeds 2^64: twelve letters hold all of it
  return id;
}

} // namespace lamella::net
