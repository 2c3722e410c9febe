/// The flags of `lamella events`, and the wait for the next ones.
#include "cli/app.hpp"
#include "cli/client/admin.hpp"
#include "cli/client/events.hpp"
#include "cli/http_status.hpp"
#include "cli/interrupt.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

namespace lamella::cli {

namespace {

/// For the next event, in one call.
constexpr std::chrono::seconds wait_time{20};
/// Between two calls of a service that does not answer.
constexpr std::chrono::seconds between_calls{1};

struct event_options {
  admin_choice admin;
  std::string since;
  bool follow = false, json = false;
};

event_lines ask(net::http_client& client, const event_options& options, uint64_t after, bool wait) {
  auto path = fmt::format("/admin/events?after={}", after);
  if (after == 0 && !options.since.empty())
    path += fmt::format("&since={}", event_age(options.since));
  if (wait) path += fmt::format("&wait={}", wait_time.count());
  net::http_reply reply;
  try {
    reply = client.get(path, admin_timeout + wait_time);
  } catch (const net::http_call_error& e) {
    throw admin_unreachable(e);
  }
  if (reply.status == http_status::not_found)
    throw command_error{exit_failure, "the server does not tell of events",
                        "--admin must be the admin.listen of a 'lamella serve' of this version"};
  if (reply.status != http_status::ok) throw admin_refused(reply);
  return event_lines_of(parse_answer(reply.body), options.json);
}

void print(const event_lines& x) {
  if (x.missed > 0)
    std::fprintf(stderr, "lamella: %llu earlier events are not kept any more\n",
                 static_cast<unsigned long long>(x.missed));
  for (const auto& line : x.lines) std::printf("%s\n", line.c_str());
  if (std::fflush(stdout) != 0)
    throw command_error{exit_failure, "cannot write to standard output"};
}

/// A service that has answered once may end and come again: its events are numbered anew then, and
/// it knows by the number that this reader has seen none of them.
int follow(const event_options& options) {
  const auto client = options.admin.client();
  interrupts signals;
  interrupt_watch ctrl_c{signals, [&] { client->abort(); }};
  uint64_t seen = 0;
  bool first = true, away = false;
  while (!ctrl_c.interrupted()) {
    try {
      const auto x = ask(*client, options, seen, !first && !away);
      first = away = false;
      print(x);
      seen = x.newest;
    } catch (const command_error& e) {
      if (ctrl_c.interrupted()) break; // that aborted the call
      if (first || e.code() != exit_unavailable) throw;
      if (!std::exchange(away, true))
        std::fprintf(stderr,
                     "lamella: the server does not answer; its events follow when it does\n");
      ctrl_c.wait_for(between_calls);
    }
  }
  return exit_success;
}

} // namespace

run_function setup_events(CLI::App& app) {
  auto options = std::make_shared<event_options>();
  add_admin_flags(app, options->admin);
  app.add_flag(
      "--follow,-f", options->follow,
      "Go on with those to come, until Ctrl-C; also when the server has ended and comes again");
  app.add_option("--since", options->since, "No older ones: 90s, 10m, 2h or 1d")->type_name("TIME");
  app.add_flag("--json", options->json, "Write each event as a line of JSON");
  return [options] {
    if (!options->since.empty()) event_age(options->since); // a mistake before a connection
    if (options->follow) return follow(*options);
    const auto client = options->admin.client();
    print(ask(*client, *options, 0, false));
    return static_cast<int>(exit_success);
  };
}

} // namespace lamella::cli
