/// An admin listener that says what a test wants, and the real binary run against it.
#pragma once

#include "net/http/http_server.hpp"
#include "tests/cli/program.hpp"
#include "tests/scratch_folder.hpp"

#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace lamella::tests {

/// The last answer of a route stays.
class fake_admin {
public:
  struct reply {
    int status;
    std::string body;
  };

  std::map<std::string, std::deque<reply>> answers; ///< by "METHOD path"
  std::vector<std::string> bodies;                  ///< of POST, in their order
  std::vector<std::string> queries;                 ///< of those that have one, in their order

  fake_admin() : server_{{}, {{"admin", "127.0.0.1", 0, [this](auto e) { answer(e); }, {}, {}}}} {
    server_.start();
    answers["GET /ready"] = {{200, R"({"status":"ready"})"}};
  }

  /// Runs a command against it.
  program_result run(const std::string& words, const std::string& under = "timeout 300") {
    const scratch_folder folder;
    return run_shell(folder / ".", under + " lamella " + words + " --admin 127.0.0.1:"
                                       + std::to_string(server_.port("admin")));
  }

private:
  void answer(const net::http_exchange_ptr& exchange) {
    const std::lock_guard lock{mutex_};
    const auto& request = exchange->request();
    if (request.method == "POST") bodies.push_back(request.body);
    if (!request.query.empty()) queries.push_back(request.query);
    auto& next = answers[request.method + " " + request.path];
    const auto x = next.empty() ? reply{404, "{}"} : next.front();
    if (next.size() > 1) next.pop_front();
    exchange->respond(x.status, {{"content-type", "application/json"}}, x.body);
  }

  std::mutex mutex_;
  net::http_server server_;
};

} // namespace lamella::tests
