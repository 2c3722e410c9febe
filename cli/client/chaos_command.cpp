/// The flags of `lamella chaos`.
#include "cli/app.hpp"
#include "cli/client/chaos.hpp"

#include <cstdio>

namespace lamella::cli {

namespace {

/// "3s", "500ms", "10m", "2h" or plain seconds.
double seconds_of(const std::string& flag, const std::string& text) {
  size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const auto unit = text.substr(used);
  const double factor = unit == "ms"                ? 1e-3
                        : unit == "s" || unit == "" ? 1
                        : unit == "m"               ? 60
                        : unit == "h"               ? 3600
                                                    : 0;
  constexpr double longest = 7 * 24 * 3600.0;
  if (used == 0 || factor == 0 || !(value > 0) || value * factor > longest)
    throw command_error{exit_usage, flag + ": '" + text + "' is not a duration",
                        "write it as 500ms, 3s, 10m or 2h"};
  return value * factor;
}

} // namespace

run_function setup_chaos(CLI::App& app) {
  auto server = add_server_flags(app);
  auto options = std::make_shared<chaos_options>();
  struct spans {
    std::string every = "5s", how_long = "30s", duration = "500ms", after;
    bool any = false;
  };
  auto text = std::make_shared<spans>();
  app.add_option("action", options->action,
                 "kill, stop, pause, slow, partition, isolate, corrupt, drop or oom (default: "
                 "kill); isolate: cut off from the data plane, control link up")
      ->check(CLI::IsMember(
          {"kill", "stop", "pause", "slow", "partition", "isolate", "corrupt", "drop", "oom"}));
  app.add_option("--admin", options->admin, "Address of the service's admin listener")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--admin-key-file", options->admin_key_file,
                 "File whose first key is sent to the admin listener")
      ->type_name("FILE");
  auto* target = app.add_option("--target", options->target,
                                "A role (model, attention, prefill) or a seat (model/0)")
                     ->type_name("ROLE[/NAME]");
  app.add_flag("--random", text->any, "Any worker (default without --target)")->excludes(target);
  app.add_option("--every", text->every, "Time between faults (default: 5s)")->type_name("TIME");
  app.add_option("--after", text->after,
                 "Time to the first fault, once streams run (default: --every, 2s at most)")
      ->type_name("TIME");
  app.add_option("--for", text->how_long, "Time after which no fault is injected (default: 30s)")
      ->type_name("TIME");
  app.add_option("--count", options->count, "Maximum number of faults")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--duration", text->duration,
                 "Duration of pause, slow and isolate (default: 500ms)")
      ->type_name("TIME");
  app.add_option("--streams", options->streams, "Concurrent streams (default: 16)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  app.add_option("--tokens", options->tokens, "Output tokens of each answer (default: 256)")
      ->type_name("N")
      ->check(CLI::Range(2, 100'000));
  app.add_option("--seed", options->seed, "Seed of victims, prompts and sampling (default: 1)")
      ->type_name("N");
  return [server, options, text] {
    options->every_s = seconds_of("--every", text->every);
    options->for_s = seconds_of("--for", text->how_long);
    if (!text->after.empty()) options->after_s = seconds_of("--after", text->after);
    options->duration_s = seconds_of("--duration", text->duration);
    interrupts signals;
    try {
      const auto report = run_chaos(*server, *options, signals);
      std::fputs(chaos_page(report, *options).c_str(), stdout);
      if (report.interrupted) return int{exit_interrupted};
      return report.passed() ? int{exit_success} : int{exit_failure};
    } catch (const net::http_call_error& e) {
      throw unreachable(e);
    }
  };
}

} // namespace lamella::cli
