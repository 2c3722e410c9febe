/// `lamella status`: what a running server is doing, from its admin listener.
#include "cli/app.hpp"
#include "cli/client/admin.hpp"
#include "cli/client/status_page.hpp"
#include "cli/client/status_tree.hpp"
#include "cli/client/watch.hpp"
#include "cli/http_status.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <thread>

namespace lamella::cli {

namespace {

using clock = std::chrono::steady_clock;

struct status_options {
  admin_choice admin;
  bool json = false;
  bool tree = false;
  double wait_seconds = 0;
  std::string watch; ///< seconds between two pages, as written
};

/// "loading: weights 63 %, about 4 s left", or without the seconds where nobody knows them; from
/// the body of /ready.
std::string why_not_ready(const net::http_reply& ready) {
  try {
    const auto body = parse_json(ready.body);
    auto text = text_or(body.find("status"), "not ready");
    if (const auto* progress = body.find("progress"); progress != nullptr && !progress->is_null()) {
      text += fmt::format(": {} {:.0f} %", text_or(progress->find("phase"), ""),
                          number_or(progress->find("ratio"), 0) * 100);
      if (const auto* left = progress->find("eta_s"); left != nullptr && !left->is_null())
        text += fmt::format(", about {:.0f} s left", number_or(left, 0));
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
net::http_reply ready_answer(net::http_client& client, double wait_seconds) {
  const auto end =
      clock::now() + std::chrono::milliseconds{static_cast<int64_t>(wait_seconds * 1e3)};
  constexpr std::chrono::milliseconds between{100};
  while (true) {
    std::optional<net::http_call_error> failed;
    try {
      auto reply = client.get("/ready", admin_timeout);
      if (reply.status == http_status::ok || clock::now() >= end) return reply;
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

/// What the server says of itself, in the form that was asked for.
std::string page_of(const net::http_reply& reply, const status_options& options) {
  if (options.json) return reply.body.ends_with('\n') ? reply.body : reply.body + "\n";
  if (reply.status != http_status::ok) return {};
  const auto status = parse_answer(reply.body);
  return options.tree ? status_tree(status) : status_page(status);
}

int status(const status_options& options) {
  const auto client = options.admin.client();
  const auto ready = ready_answer(*client, options.wait_seconds);
  const auto reply = admin_get(*client, "/admin/status");
  std::fputs(page_of(reply, options).c_str(), stdout);
  // While it loads there is no status, and /ready says more about it.
  if (ready.status != http_status::ok) {
    const auto why = why_not_ready(ready);
    throw command_error{exit_failure, "the server is not ready: " + why,
                        why.starts_with("draining") ? "" : "--wait SECONDS waits until it is"};
  }
  if (reply.status != http_status::ok) throw admin_refused(reply);
  return exit_success;
}

/// The same again and again. The first page needs a server that answers and takes the key; a later
/// one says why there is none.
int watch_status(const status_options& options) {
  const auto every = watch_interval(options.watch);
  const auto client = options.admin.client();
  ready_answer(*client, options.wait_seconds);
  bool first = true;
  const auto page = [&]() -> std::string {
    try {
      const auto ready = client->get("/ready", admin_timeout);
      const auto reply = client->get("/admin/status", admin_timeout);
      const bool loads = ready.status != http_status::ok;
      if (reply.status != http_status::ok && !loads) throw admin_refused(reply);
      first = false;
      return page_of(reply, options)
             + (loads && !options.json ? "the server is not ready: " + why_not_ready(ready) + "\n"
                                       : "");
    } catch (const net::http_call_error& e) {
      if (first) throw admin_unreachable(e);
      return std::string{"the server does not answer: "} + e.what() + "\n";
    }
  };
  return watch(*client, every, !options.json, page);
}

} // namespace

run_function setup_status(CLI::App& app) {
  auto options = std::make_shared<status_options>();
  add_admin_flags(app, options->admin);
  auto* json = app.add_flag("--json", options->json, "Write the server's JSON unchanged");
  app.add_flag("--tree", options->tree, "Draw the supervision tree with seats and restarts")
      ->excludes(json);
  app.add_option("--wait", options->wait_seconds, "Seconds to wait for the server to be ready")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, wait_seconds_max));
  auto* watched = app.add_option("--watch", options->watch,
                                 "Show it again every SECONDS (2 if left out) until Ctrl-C; a "
                                 "terminal is redrawn")
                      ->type_name("SECONDS")
                      ->expected(0, 1);
  return [options, watched] {
    return watched->count() > 0 ? watch_status(*options) : status(*options);
  };
}

} // namespace lamella::cli
