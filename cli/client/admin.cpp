#include "cli/client/admin.hpp"

#include "cli/app.hpp"

namespace lamella::cli {

std::unique_ptr<net::http_client> admin_choice::client() const {
  const server_choice server{"http://" + address, api_key_file};
  net::http_url url;
  try {
    url = server.address();
  } catch (const command_error&) {
    throw command_error{exit_usage, "--admin: '" + address + "' is not HOST:PORT",
                        "write it as 127.0.0.1:8001"};
  }
  return std::make_unique<net::http_client>(url, server.api_key());
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

net::http_reply admin_get(net::http_client& client, const std::string& path) {
  try {
    return client.get(path, admin_timeout);
  } catch (const net::http_call_error& e) {
    throw admin_unreachable(e);
  }
}

} // namespace lamella::cli
