/// Common part of the client commands: URL, key and errors of a server.
#pragma once

#include "base/json.hpp"
#include "cli/commands.hpp"
#include "net/http/client/http_client.hpp"

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace lamella::cli {

/// Which server, and as whom.
struct server_choice {
  std::string url = "http://127.0.0.1:8000";
  std::string api_key_file;

  /// A trailing `/v1` is dropped, as other clients want it there. Throws command_error (2).
  net::http_url address() const;
  /// The first key of the file; empty without one. Throws command_error (66, 77).
  std::string api_key() const;
};

/// Adds `--url` and `--api-key-file`.
std::shared_ptr<server_choice> add_server_flags(CLI::App& app);

/// No server answers: exit code 69 with a hint.
command_error unreachable(const net::http_call_error& error);

/// An answer that is not 2xx, as a command_error: 69 for 503, else 1. The message of the server's
/// error envelope where it sent one.
command_error refused(const net::http_reply& reply);

/// The message in an error envelope, or the status and the beginning of the body.
std::string error_message(int status, std::string_view body);

/// The server's answer as JSON. Throws command_error (1) when it is not.
json_value parse_answer(std::string_view body);

/// The id of the first model of `GET /v1/models`. Throws command_error.
std::string first_model(net::http_client& client);

/// The value at a path of member names, where a number as a name indexes an array; null when there
/// is none.
const json_value* find_path(const json_value& from, std::initializer_list<std::string_view> path);
/// Of what find_path found: the text or number, else the fallback.
std::string text_or(const json_value* value, std::string_view fallback);
double number_or(const json_value* value, double fallback);

} // namespace lamella::cli
