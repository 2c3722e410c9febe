#include "net/api/unsupported_fields.hpp"

#include "base/json_writer.hpp"
#include "net/http/api_error.hpp"

#include <string>

namespace lamella::net {

void refuse_unsupported(json_object_reader& body, std::span<const unsupported_field> fields) {
  for (const auto& [name, harmless] : fields) {
    const json_value* value = body.find(name);
    if (!value) continue;
    const std::string text = to_json(*value);
    std::string_view rest = harmless;
    bool off = false;
    while (!rest.empty() && !off) {
      const size_t end = rest.find(' ');
      off = rest.substr(0, end) == text;
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    }
    if (!off)
      throw unsupported_parameter(body.path(name), body.path(name)
                                                       + " is not supported by this server: "
                                                         "leave it out");
  }
}

} // namespace lamella::net
