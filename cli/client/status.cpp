/// `lamella status`: what a running server is doing, from its admin listener.
#include "cli/app.hpp"
#include "cli/client.hpp"
#include "cli/client/status_tree.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

namespace lamella::cli {

namespace {

using clock = std::chrono::steady_clock;

constexpr int ok = 200;
constexpr std::chrono::seconds timeout{5};

struct status_options {
  std::string admin = "127.0.0.1:8001";
  std::string api_key_file;
  bool json = false;
  bool tree = false;
  double wait_seconds = 0;
};

/// Columns as wide as their widest cell.
class table {
public:
  explicit table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  void print() const {
    std::vector<size_t> widths(rows_.front().size(), 0);
    for (const auto& row : rows_)
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    for (const auto& row : rows_) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i)
        line +=
            i + 1 == row.size() ? row[i] : row[i] + std::string(widths[i] + 2 - row[i].size(), ' ');
      std::printf("%s\n", line.c_str());
    }
    std::printf("\n");
  }

private:
  std::vector<std::vector<std::string>> rows_;
};

std::string count_of(const json_value& from, std::initializer_list<std::string_view> path) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", number_or(find_path(from, path), 0));
  return text;
}

const json_value::array& items_of(const json_value& from, std::string_view name) {
  static const json_value::array none;
  const auto* found = from.find(name);
  const auto* items = found == nullptr ? nullptr : found->get_if<json_value::array>();
  return items == nullptr ? none : *items;
}

/// "live", or "live, slow".
std::string state_of(const json_value& worker) {
  const auto* slow = worker.find("slow");
  const auto* yes = slow == nullptr ? nullptr : slow->get_if<bool>();
  return text_or(worker.find("state"), "-") + (yes != nullptr && *yes ? ", slow" : "");
}

/// "shard 2"; "-" where it has none.
std::string part_of(const json_value& worker) {
  const auto part = text_or(worker.find("part"), "");
  return part.empty() ? "-" : part;
}

void print_status(const json_value& status) {
  table workers{{"WORKER", "ROLE", "SEAT", "PART", "STATE", "INCARNATION", "PID", "DEVICE"}};
  for (const auto& w : items_of(status, "workers"))
    workers.add({text_or(w.find("name"), "-"), text_or(w.find("role"), "-"),
                 text_or(w.find("seat"), count_of(w, {"seat"})), part_of(w), state_of(w),
                 count_of(w, {"incarnation"}), count_of(w, {"pid"}),
                 text_or(w.find("device"), "-")});
  workers.print();
  table links{{"FROM", "TO", "TIER", "RTT_US", "BYTES"}};
  for (const auto& w : items_of(status, "workers"))
    for (const auto& p : items_of(w, "peers"))
      links.add({text_or(w.find("seat"), "-"), text_or(p.find("seat"), "-"),
                 text_or(p.find("transport"), "-"), count_of(p, {"rtt_us"}),
                 count_of(p, {"bytes"})});
  if (!links.empty()) links.print();
  table pools{
      {"POOL", "EPOCH", "MEMBERS", "PARTITION", "FREE", "USED", "CACHED", "PARITY", "ORPHAN"}};
  for (const auto& p : items_of(status, "pools")) {
    const auto name = text_or(p.find("name"), "-");
    pools.add({name, count_of(status, {"epochs", "attention/" + name}), count_of(p, {"members"}),
               text_or(p.find("partition"), "-"), count_of(p, {"slots", "free"}),
               count_of(p, {"slots", "used"}), count_of(p, {"slots", "cached"}),
               count_of(p, {"slots", "parity"}), count_of(p, {"slots", "orphan"})});
  }
  pools.print();
  std::printf("requests: %s running, %s waiting, %s recovering\n",
              count_of(status, {"requests", "running"}).c_str(),
              count_of(status, {"requests", "waiting"}).c_str(),
              count_of(status, {"requests", "recovering"}).c_str());
  for (const char* list : {"workers", "missing"})
    for (const auto& w : items_of(status, list))
      if (const auto trouble = text_or(w.find("trouble"), ""); !trouble.empty())
        std::printf("%s keeps failing: %s\n", text_or(w.find("seat"), "-").c_str(),
                    trouble.c_str());
}

/// "loading: weights 63 %, about 4 s left", from the body of /ready.
std::string why_not_ready(const net::http_reply& ready) {
  try {
    const auto body = parse_json(ready.body);
    auto text = text_or(body.find("status"), "not ready");
    if (const auto* progress = body.find("progress"); progress != nullptr && !progress->is_null()) {
      char more[64];
      std::snprintf(more, sizeof more, " %.0f %%, about %.0f s left",
                    number_or(progress->find("ratio"), 0) * 100,
                    number_or(progress->find("eta_s"), 0));
      text += ": " + text_or(progress->find("phase"), "") + more;
    }
    if (const auto reason = text_or(body.find("reason"), ""); !reason.empty())
      text += ": " + reason;
    return text;
  } catch (const json_syntax_error&) {
    return error_message(ready.status, ready.body);
  }
}

/// GET /ready until it is 200 or time is over; then the last answer. Throws command_error (69) when
/// nobody has answered at all.
net::http_reply ready_answer(net::http_client& client, const status_options& options) {
  const auto end =
      clock::now() + std::chrono::milliseconds{static_cast<int64_t>(options.wait_seconds * 1e3)};
  constexpr std::chrono::milliseconds between{100};
  while (true) {
    std::optional<net::http_call_error> failed;
    try {
      auto reply = client.get("/ready", timeout);
      if (reply.status == ok || clock::now() >= end) return reply;
    } catch (const net::http_call_error& e) {
      failed = e;
    }
    if (failed && clock::now() >= end)
      throw command_error{exit_unavailable, failed->what(),
                          "is 'lamella serve' running? --admin names its admin.listen; "
                          "--wait SECONDS waits for it"};
    std::this_thread::sleep_for(between);
  }
}

int status(const status_options& options) {
  const server_choice server{"http://" + options.admin, options.api_key_file};
  net::http_url address;
  try {
    address = server.address();
  } catch (const command_error&) {
    throw command_error{exit_usage, "--admin: '" + options.admin + "' is not HOST:PORT",
                        "write it as 127.0.0.1:8001"};
  }
  net::http_client client{address, server.api_key()};
  const auto ready = ready_answer(client, options);
  net::http_reply reply;
  try {
    reply = client.get("/admin/status", timeout);
  } catch (const net::http_call_error& e) {
    throw unreachable(e);
  }
  if (options.json) {
    std::fwrite(reply.body.data(), 1, reply.body.size(), stdout);
    if (!reply.body.ends_with('\n')) std::fputs("\n", stdout);
  } else if (reply.status == ok && options.tree) {
    std::fputs(status_tree(parse_answer(reply.body)).c_str(), stdout);
  } else if (reply.status == ok) {
    print_status(parse_answer(reply.body));
  }
  // While it loads there is no status, and /ready says more about it.
  if (ready.status != ok) {
    const auto why = why_not_ready(ready);
    throw command_error{exit_failure, "the server is not ready: " + why,
                        why.starts_with("draining") ? "" : "--wait SECONDS waits until it is"};
  }
  if (reply.status != ok) throw refused(reply);
  return exit_success;
}

} // namespace

run_function setup_status(CLI::App& app) {
  auto options = std::make_shared<status_options>();
  app.add_option("--admin", options->admin, "Address of the server's admin listener")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--api-key-file", options->api_key_file, "Send the first key of this file")
      ->type_name("FILE");
  auto* json = app.add_flag("--json", options->json, "Write the server's JSON unchanged");
  app.add_flag("--tree", options->tree, "Draw the supervision tree with seats and restarts")
      ->excludes(json);
  constexpr double day = 86'400;
  app.add_option("--wait", options->wait_seconds, "Seconds to wait for the server to be ready")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, day));
  return [options] { return status(*options); };
}

} // namespace lamella::cli
