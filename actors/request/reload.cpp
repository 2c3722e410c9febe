#include "actors/request/reload.hpp"

#include "base/json_writer.hpp"

namespace lamella::actors {

std::string to_json(const reload_report& x) {
  json_writer out;
  const auto list = [&](const char* name, const std::vector<std::string>& keys) {
    out.key(name).begin_array();
    for (const auto& key : keys) out.value(key);
    out.end_array();
  };
  out.begin_object().member("version", 1);
  list("applied", x.applied);
  list("pending", x.pending);
  list("needs_restart", x.needs_restart);
  out.member("api_keys", x.api_keys).member("admin_keys", x.admin_keys);
  return out.end_object().text();
}

} // namespace lamella::actors
