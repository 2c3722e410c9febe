#include "cli/client/admin.hpp"

#include "cli/app.hpp"
#include "cli/http_status.hpp"

namespace lamella::cli {

net::http_url admin_choice::url() const {
  const command_error wrong{exit_usage, "--admin: '" + address + "' is not HOST:PORT",
                            "write it as 127.0.0.1:8001"};
  const auto colon = address.rfind(':'), bracket = address.rfind(']');
  if (colon == address.npos || (bracket != address.npos && colon < bracket)) throw wrong;
  try {
    return server_choice{"http://" + address, {}}.address();
  } catch (const command_error&) {
    throw wrong;
  }
}

std::string admin_choice::api_key() const { return server_choice{{}, api_key_file}.api_key(); }

std::unique_ptr<net::http_client> admin_choice::client() const {
  return std::make_unique<net::http_client>(url(), api_key());
}

void add_admin_flags(CLI::App& app, admin_choice& choice) {
  app.add_option("--admin", choice.address, "Address of the server's admin listener")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--api-key-file", choice.api_key_file, "Send the first key of this file")
      ->type_name("FILE");
}

command_error admin_unreachable(const net::http_call_error& error) {
  return {exit_unavailable, error.what(),
          "is 'lamella serve' running? --admin names its admin.listen; "
          "'lamella status --wait SECONDS' waits for it"};
}

command_error admin_refused(const net::http_reply& reply) {
  if (reply.status != http_status::not_found) return refused(reply);
  return {exit_failure, error_message(reply.status, reply.body),
          "--admin must be the admin.listen of a 'lamella serve' of this version"};
}

net::http_reply admin_get(net::http_client& client, const std::string& path,
                          std::chrono::seconds limit) {
  try {
    return client.get(path, limit);
  } catch (const net::http_call_error& e) {
    throw admin_unreachable(e);
  }
}

} // namespace lamella::cli
