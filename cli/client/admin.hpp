/// What the commands for operators share: the admin listener of a running server.
#pragma once

#include "cli/client.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace lamella::cli {

/// The admin listener, and as whom.
struct admin_choice {
  std::string address = "127.0.0.1:8001";
  std::string api_key_file;

  /// Throws command_error (2).
  net::http_url url() const;
  /// The first key of the file; empty without one. Throws command_error (65, 66).
  std::string api_key() const;
  /// A client of it. Throws command_error (2, 65, 66).
  std::unique_ptr<net::http_client> client() const;
};

/// Adds `--admin` and `--api-key-file`, which are stored to `choice`.
void add_admin_flags(CLI::App& app, admin_choice& choice);

/// Of one call.
constexpr std::chrono::seconds admin_timeout{5};
/// Of flags that say how long a command waits for the server.
constexpr double wait_seconds_max = 86'400;

/// No admin listener answers: exit code 69 with a hint.
command_error admin_unreachable(const net::http_call_error& error);

/// The admin listener refuses: its reason, with a hint.
command_error admin_refused(const net::http_reply& reply);

/// GET of a path. Throws command_error (69) when nobody answers.
net::http_reply admin_get(net::http_client& client, const std::string& path,
                          std::chrono::seconds limit = admin_timeout);

} // namespace lamella::cli
