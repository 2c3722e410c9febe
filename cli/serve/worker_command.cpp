/// `lamella worker`: one seat of a service in a process of its own.
#include "actors/machine/sizing.hpp"
#include "actors/machine/topology.hpp"
#include "actors/worker/data_plane_port.hpp"
#include "actors/worker/worker_process.hpp"
#include "base/patience.hpp"
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/configuration.hpp"
#include "cli/log.hpp"
#include "cli/open_files.hpp"
#include "cli/serve/rejoin.hpp"
#include "cli/signals.hpp"
#include "net/data_plane/data_plane.hpp"

#include <spdlog/spdlog.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <random>
#include <system_error>

#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace lamella::cli {
namespace {

struct worker_flags {
  std::string role, cell, join, name, secret_file, model, log_level = "info";
  std::string device = "auto", listen = "127.0.0.1:0", processors;
  uint32_t seat = actors::any_seat;
  double heartbeat = 0.1, dead = 1.0, rejoin = 8.0, drain = 60.0;
  std::string tls_certificate, tls_key, tls_ca;
  int64_t parent = 0;
};

/// Ends with the process that started us, whatever ends it.
void tie_to(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have ended before the line above.
  if (getppid() != parent)
    throw command_error{exit_failure, "the parent process of this worker has exited"};
}

actors::worker_options options_of(const worker_flags& flags) {
  actors::worker_options x;
  const auto join = config::parse_address(flags.join);
  if (!join || join->port == 0)
    throw command_error{exit_usage, "--join: '" + flags.join + "' is not HOST:PORT",
                        "give the control.listen address of the service"};
  x.role = *scheduler::role_named(flags.role); // one of the three, the flag is checked
  x.join = *join;
  x.name = flags.name.empty() ? actors::host_name() + "-" + std::to_string(getpid()) : flags.name;
  x.preferred = flags.seat;
  if (!flags.cell.empty() && x.role != scheduler::worker_role::attention)
    throw command_error{exit_usage, "--cell: the pool '" + flags.role + "' has no cells",
                        "only --role attention can name one"};
  x.cell = flags.cell;
  x.model = flags.model;
  x.device = flags.device;
  // A parent stops its children when all of them are to end.
  if (flags.parent == 0)
    x.drain = std::chrono::milliseconds{static_cast<int64_t>(flags.drain * 1e3)};
  config::settings all;
  all.control.heartbeat = std::chrono::milliseconds{static_cast<int64_t>(flags.heartbeat * 1e3)};
  all.control.dead = std::chrono::milliseconds{static_cast<int64_t>(flags.dead * 1e3)};
  all.control.tls_certificate = flags.tls_certificate;
  all.control.tls_key = flags.tls_key;
  all.control.tls_ca = flags.tls_ca;
  std::vector<command_error::problem> problems;
  for (const auto& found : config::check(all)) problems.push_back({found.message, found.hint});
  if (!config::is_loopback(join->host) && !all.control.tls())
    problems.push_back(
        {"--join: " + join->host + " is another host, and mutual TLS is not configured",
         "give --tls-certificate, --tls-key and --tls-ca"});
  // A seat is not taken before these.
  if (const auto why = actors::why_no_device(flags.device); !why.empty())
    throw command_error{exit_unavailable, "--device: " + why,
                        "'lamella doctor' lists the devices of this machine"};
  try {
    net::data_plane::try_listen(flags.listen);
  } catch (const std::exception& e) {
    problems.push_back({std::string{"--listen: "} + e.what(),
                        "give an address of this host and a free port, or port 0"});
  }
  if (!problems.empty()) throw command_error{exit_configuration, std::move(problems)};
  x.control = all.control;
  return x;
}

config::log_settings log_of(const worker_flags& flags) {
  config::log_settings log;
  const std::map<std::string, config::log_level> levels{{"error", config::log_level::error},
                                                        {"warn", config::log_level::warn},
                                                        {"info", config::log_level::info},
                                                        {"debug", config::log_level::debug},
                                                        {"trace", config::log_level::trace}};
  log.level = levels.at(flags.log_level);
  return log;
}

net::shared_secret secret_of(const worker_flags& flags) {
  try {
    return net::shared_secret::from_file(flags.secret_file);
  } catch (const std::runtime_error& e) {
    throw command_error{exit_permission, std::string{"--secret-file: "} + e.what(),
                        "it must be a copy of the service's control.secret_file that this user "
                        "alone may read"};
  }
}

/// The exit code after a session that is not to be followed by another one; says why.
std::optional<int> exit_after(actors::session_end end, const worker_flags& flags) {
  switch (end) {
  case actors::session_end::stopped:
    return exit_success;
  case actors::session_end::denied:
    print_error("the control process at " + flags.join + " rejected this worker: wrong secret",
                "both sides need the same --secret-file");
    return exit_permission;
  case actors::session_end::refused:
    print_error("the control process at " + flags.join + " refused this worker; see above", "");
    return exit_unavailable;
  case actors::session_end::failed:
    print_error("the device of this worker failed", "");
    return 70;
  case actors::session_end::unreachable:
  case actors::session_end::lost:
    break;
  }
  return std::nullopt;
}

/// Before any other thread is there.
void bind_process(const std::string& processors) {
  if (processors.empty()) return;
  try {
    actors::bind_to(*actors::processors_of(processors)); // the flag is checked
  } catch (const std::system_error&) {
    throw command_error{exit_configuration,
                        "--processors: this process may run on none of " + processors,
                        "'lamella doctor' tells the processors where this process may run"};
  }
}

/// The default address is for workers on the service's own host.
void warn_of_listen(const worker_flags& flags) {
  const auto join = config::parse_address(flags.join), data = config::parse_address(flags.listen);
  if (join && data && !config::is_loopback(join->host) && config::is_loopback(data->host))
    spdlog::warn("workers on other hosts cannot reach this one at {}: give --listen an address of "
                 "this host, or 0.0.0.0:0",
                 flags.listen);
}

/// Joins again and again until there is a reason not to. Returns the exit code.
int work(const worker_flags& flags) {
  mallopt(M_ARENA_MAX, 1);
  const auto files = allow_open_files();
  if (flags.parent != 0) tie_to(static_cast<pid_t>(flags.parent));
  bind_process(flags.processors);
  signal_watch signals;
  const auto log = log_of(flags);
  auto options = options_of(flags);
  configure_log(log, false, options.name);
  warn_of_few_files(files);
  warn_of_listen(flags);
  const auto secret = secret_of(flags);
  actors::worker_process process{std::move(options), secret,
                                 actors::data_plane_links(flags.listen)};
  const auto stop = [&] { return signals.terminate_asked(); };
  const auto hurry = [&] { return signals.terminate_asked_again(); };
  rejoin_pause pause{flags.parent != 0 ? rejoin_pause::longest_of_child : rejoin_pause::longest};
  std::minstd_rand random{std::random_device{}()};
  rejoin_limit limit{flags.rejoin};
  while (!stop()) {
    const auto began = std::chrono::steady_clock::now();
    if (const auto code = exit_after(process.run(stop, hurry), flags)) {
      be_patient(); // while the kernel takes its memory back, others serve
      return *code;
    }
    const auto now = std::chrono::steady_clock::now();
    const auto delay = pause.next(now - began, std::generate_canonical<double, 32>(random));
    limit.ended(process.served(), now);
    // A process that can serve nobody is somebody else's to start again (reliability A8).
    if (limit.over(now + delay)) {
      print_error(fmt::format("this worker could not rejoin the service at {} within {} s",
                              flags.join, flags.rejoin),
                  "restart the worker with the service; --rejoin-seconds 0 sets no limit");
      return exit_unavailable;
    }
    spdlog::info("rejoining in_ms={}", delay.count());
    if (signals.terminate_within(delay)) return exit_success;
  }
  return exit_success;
}

/// What is wrong with a name; empty: nothing.
std::string plain_name(const std::string& text) {
  const bool plain = text.size() <= 64
                     && text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
                                               "TUVWXYZ0123456789._-")
                            == std::string::npos;
  return plain ? std::string{} : "up to 64 letters, digits and . _ -";
}

/// Which seat of which service.
void add_seat_flags(CLI::App& app, worker_flags& flags) {
  app.add_option("--role", flags.role, "The pool to join")
      ->required()
      ->check(CLI::IsMember({"model", "attention", "prefill"}));
  app.add_option("--cell", flags.cell,
                 "The attention cell to join, where cells have workers of their own")
      ->type_name("CELL")
      ->check(plain_name);
  app.add_option("--join", flags.join, "The service's control.listen address")
      ->type_name("HOST:PORT")
      ->required();
  app.add_option("--secret-file", flags.secret_file, "The secret shared with the service")
      ->type_name("FILE")
      ->required();
  app.add_option("--name", flags.name, "Name in logs and status (default: host and pid)")
      ->type_name("NAME")
      ->check(plain_name);
  app.add_option("--seat", flags.seat, "Preferred seat number, used if that seat is free")
      ->type_name("N");
}

/// What serves it.
void add_resource_flags(CLI::App& app, worker_flags& flags) {
  app.add_option("--device", flags.device,
                 "Device: auto (the pool's device option), host or cuda:N")
      ->type_name("DEVICE")
      ->check([](const std::string& text) { return config::check_device(text); })
      ->capture_default_str();
  app.add_option("--processors", flags.processors,
                 "Processors to run on, with memory near them, such as 0-15 (default: all)")
      ->type_name("LIST")
      ->check([](const std::string& text) {
        return actors::processors_of(text) ? std::string{} : "a list of numbers such as 0-7,16-23";
      });
  app.add_option("--listen", flags.listen,
                 "Data plane address for workers on other hosts; port 0: any")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  app.add_option("--model", flags.model,
                 "GGUF file or Hugging Face directory of a replica or prefill worker (default: the "
                 "service's path); attention workers read none")
      ->type_name("PATH");
}

void add_timing_flags(CLI::App& app, worker_flags& flags) {
  app.add_option("--heartbeat-seconds", flags.heartbeat, "As control.heartbeat_seconds")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_option("--dead-seconds", flags.dead,
                 "Silence after which a peer is dead, as control.dead_seconds")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str();
  app.add_option(
         "--rejoin-seconds", flags.rejoin,
         "Seconds to rejoin a lost service before this worker exits with 69; 0: no limit, as for "
         "one that has not served yet")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
}

void add_drain_flag(CLI::App& app, worker_flags& flags) {
  app.add_option("--drain-seconds", flags.drain,
                 "Seconds after SIGTERM for other workers to take over what this one does, after "
                 "which it exits with 0; a second SIGTERM ends it at once, as does 0")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
}

void add_tls_flags(CLI::App& app, worker_flags& flags) {
  app.add_option("--tls-certificate", flags.tls_certificate, "Certificate (PEM) of this worker")
      ->type_name("FILE");
  app.add_option("--tls-key", flags.tls_key, "Private key (PEM)")->type_name("FILE");
  app.add_option("--tls-ca", flags.tls_ca, "CA (PEM) of the service's certificate")
      ->type_name("FILE");
}

} // namespace

run_function setup_worker(CLI::App& app) {
  auto flags = std::make_shared<worker_flags>();
  add_seat_flags(app, *flags);
  add_resource_flags(app, *flags);
  add_timing_flags(app, *flags);
  add_drain_flag(app, *flags);
  add_tls_flags(app, *flags);
  app.add_option("--log-level", flags->log_level, "Lowest severity that is logged")
      ->check(CLI::IsMember({"error", "warn", "info", "debug", "trace"}))
      ->capture_default_str();
  app.add_option("--parent", flags->parent, "Exit when this parent process exits")
      ->type_name("PID");
  auto failpoints = add_failpoint_flag(app);
  return [flags, failpoints] {
    arm_failpoints(*failpoints);
    return work(*flags);
  };
}

} // namespace lamella::cli
