#include "cli/client.hpp"

#include "cli/app.hpp"
#include "cli/http_status.hpp"

#include <charconv>
#include <fstream>

namespace lamella::cli {

namespace {
constexpr size_t shown_bytes = 200;     // of an answer that is no envelope
constexpr size_t key_line_bytes = 4096; // a longer line is no key
} // namespace

net::http_url server_choice::address() const {
  try {
    auto parsed = net::parse_http_url(url);
    constexpr std::string_view version = "/v1";
    if (parsed.prefix.ends_with(version))
      parsed.prefix.resize(parsed.prefix.size() - version.size());
    return parsed;
  } catch (const std::invalid_argument& e) {
    throw command_error{exit_usage, std::string{"--url: "} + e.what(),
                        "write it as http://127.0.0.1:8000"};
  }
}

std::string server_choice::api_key() const {
  if (api_key_file.empty()) return {};
  std::ifstream in{api_key_file};
  if (!in)
    throw command_error{exit_missing_input, "--api-key-file: cannot read " + api_key_file,
                        "write the key into it, on a line of its own"};
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    auto key = line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
    for (const char c : key)
      if (c <= ' ' || c > '~' || key.size() > key_line_bytes)
        throw command_error{exit_damaged_input,
                            "--api-key-file: the first key of " + api_key_file
                                + " has spaces, other than ASCII characters or more than "
                                + std::to_string(key_line_bytes) + " bytes",
                            "write one key per line; # starts a comment"};
    return key;
  }
  throw command_error{exit_damaged_input, "--api-key-file: " + api_key_file + " has no keys",
                      "write one key per line; # starts a comment"};
}

std::shared_ptr<server_choice> add_server_flags(CLI::App& app) {
  auto choice = std::make_shared<server_choice>();
  app.add_option("--url", choice->url, "URL of the server")
      ->type_name("URL")
      ->capture_default_str();
  app.add_option("--api-key-file", choice->api_key_file, "Send the first key of this file")
      ->type_name("FILE");
  return choice;
}

command_error unreachable(const net::http_call_error& error) {
  using reason = net::http_call_error::reason;
  std::string hint;
  if (error.why == reason::connect || error.why == reason::resolve)
    hint = "start a server with 'lamella serve', or give its --url";
  else if (error.why == reason::trust)
    hint = "set SSL_CERT_FILE to a PEM file with the certificates to trust";
  else if (error.why == reason::timeout)
    hint = "the server may be loading or overloaded; 'lamella status' shows its state";
  else if (error.why == reason::cut)
    hint = "the server exited or aborted the request; see its log";
  return {exit_unavailable, error.what(), hint};
}

std::string error_message(int status, std::string_view body) {
  const auto code = "HTTP " + std::to_string(status);
  try {
    const auto parsed = parse_json(body);
    const auto message = text_or(find_path(parsed, {"error", "message"}), "");
    if (!message.empty()) return message + " (" + code + ")";
    const auto word = text_or(find_path(parsed, {"error"}), "");
    if (!word.empty()) return word + " (" + code + ")";
  } catch (const json_syntax_error&) { // shown as it is
  }
  std::string shown{body.substr(0, shown_bytes)};
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return shown.empty() ? code : code + ": " + shown;
}

command_error refused(const net::http_reply& reply) {
  std::string hint;
  if (reply.status == http_status::unauthorized)
    hint = "give a file with the server's key: --api-key-file FILE";
  if (reply.status == http_status::not_found)
    hint = "check --url and --model; 'curl URL/v1/models' lists the models";
  if (reply.status == http_status::service_unavailable)
    hint = "retry after 'lamella status --wait 60' returns";
  return {reply.status == http_status::service_unavailable ? exit_unavailable : exit_failure,
          error_message(reply.status, reply.body), hint};
}

json_value parse_answer(std::string_view body) {
  try {
    return parse_json(body);
  } catch (const json_syntax_error& e) {
    throw command_error{
        exit_failure, std::string{"the server's answer is not the JSON expected: "} + e.what(),
        "is this an OpenAI-style server? It said: " + std::string{body.substr(0, shown_bytes)}};
  }
}

std::string first_model(net::http_client& client) {
  constexpr std::chrono::seconds timeout{10};
  net::http_reply reply;
  try {
    reply = client.get("/v1/models", timeout);
  } catch (const net::http_call_error& e) {
    throw unreachable(e);
  }
  if (reply.status != http_status::ok) throw refused(reply);
  auto id = text_or(find_path(parse_answer(reply.body), {"data", "0", "id"}), "");
  if (id.empty())
    throw command_error{exit_failure, "the server lists no model in /v1/models",
                        "name one with --model"};
  return id;
}

const json_value* find_path(const json_value& from, std::initializer_list<std::string_view> path) {
  const auto* at = &from;
  for (const auto name : path) {
    if (const auto* items = at->get_if<json_value::array>()) {
      size_t index = 0;
      const auto end = name.data() + name.size();
      const auto [parsed, failure] = std::from_chars(name.data(), end, index);
      if (failure != std::errc{} || parsed != end || index >= items->size()) return nullptr;
      at = &(*items)[index];
    } else {
      at = at->find(name);
      if (at == nullptr) return nullptr;
    }
  }
  return at;
}

std::string text_or(const json_value* value, std::string_view fallback) {
  const auto* text = value == nullptr ? nullptr : value->get_if<std::string>();
  return text == nullptr ? std::string{fallback} : *text;
}

double number_or(const json_value* value, double fallback) {
  if (value == nullptr) return fallback;
  if (const auto* x = value->get_if<int64_t>()) return static_cast<double>(*x);
  if (const auto* x = value->get_if<uint64_t>()) return static_cast<double>(*x);
  if (const auto* x = value->get_if<double>()) return *x;
  return fallback;
}

} // namespace lamella::cli
