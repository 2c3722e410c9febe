#include "cli/serve/serve.hpp"

#include "actors/node/node.hpp"
#include "actors/worker/data_plane_port.hpp"
#include "cli/log.hpp"
#include "cli/open_files.hpp"
#include "cli/serve/service_manager.hpp"
#include "cli/signals.hpp"
#include "cli/terminal.hpp"

#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <sstream>
#include <thread>
#include <utility>

#include <malloc.h>

namespace lamella::cli {

namespace {

/// Whoever asks for JSON gets nothing else.
bool logs_json(const config::settings& options) {
  return options.log.format == config::log_format::json;
}

void announce(const actors::node& n, const config::settings& options, double seconds) {
  const auto url = [](const char* scheme, const std::string& listen, uint16_t port,
                      const char* path) {
    const auto where = config::parse_address(listen);
    auto host = where ? where->host : std::string{"127.0.0.1"};
    if (host.find(':') != host.npos) host = "[" + host + "]";
    return fmt::format("{}://{}:{}{}", scheme, host, port, path);
  };
  const auto* scheme = options.http.https() ? "https" : "http";
  const auto api = url(scheme, options.http.listen, n.http_port(), "/v1");
  const auto admin = url("http", options.admin.listen, n.admin_port(), "/metrics");
  if (logs_json(options)) {
    std::istringstream lines{n.summary()};
    for (std::string line; std::getline(lines, line);) spdlog::info("{}", line);
    spdlog::info("ready seconds={:.2f} api={} admin={}", seconds, api, admin);
    return;
  }
  std::fprintf(stderr, "%s\nready in %.2f s\n", n.summary().c_str(), seconds);
  const auto console = url("http", options.admin.listen, n.admin_port(), "/");
  const auto chat = options.http.ui ? url(scheme, options.http.listen, n.http_port(), "/")
                                    : url("http", options.admin.listen, n.admin_port(), "/chat");
  std::fprintf(stderr, "  API    %s\n  admin  %s\n", api.c_str(), admin.c_str());
  std::fprintf(stderr, "  pages  %s (chat), %s (console)\n", chat.c_str(), console.c_str());
  std::fflush(stderr);
}

void tune_heap() {
  // One heap: with one per thread, what requests leave behind is spread over all of them and never
  // goes back to the system. Nothing on the way of a token allocates enough to contend for it.
  mallopt(M_ARENA_MAX, 1);
  // What large bodies need is taken from the system and goes back at once: on the heap it would be
  // moved while all other threads wait for it.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

/// From the start of the node to its end, as signals and service manager say.
class service_run {
public:
  service_run(actors::node& n, const config::settings& options, signal_watch& signals,
              const service_manager& manager)
      : node_{n}, options_{options}, signals_{signals}, manager_{manager} {}

  /// Loads the model, with its progress shown, and announces the service; or a signal ends it.
  void start();
  /// Reloads at each hang-up, until another signal.
  void wait();
  /// Whether all requests ended in time.
  bool drain();

private:
  actors::node& node_;
  const config::settings& options_;
  signal_watch& signals_;
  const service_manager& manager_;
  bool ready_ = false;
  std::string serving_; ///< what the service manager is told
};

void service_run::start() {
  const auto began = std::chrono::steady_clock::now();
  {
    const auto bar = logs_json(options_) ? std::make_unique<progress_bar>(
                         [](const std::string& line) { spdlog::info("{}", line); })
                                         : std::make_unique<progress_bar>();
    std::string last;
    ready_ = node_.start(
        [&](const std::string& phase, uint64_t done, uint64_t total) {
          bar->update(phase, done, total);
          if (std::exchange(last, phase) != phase) manager_.status("starting: " + phase);
        },
        [&] { return signals_.terminate_asked(); });
  }
  if (!ready_) return;
  serving_ = "serving on port " + std::to_string(node_.http_port());
  announce(node_, options_,
           std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  manager_.ready(serving_);
}

void service_run::wait() {
  while (signals_.wait() == signal_watch::event::hang_up) {
    if (!ready_) continue;
    manager_.reloading();
    const bool taken = node_.reload().problems.empty();
    manager_.ready(taken ? serving_ : serving_ + "; the last reload was rejected: see the log");
  }
}

bool service_run::drain() {
  const auto limit = node_.drain_limit();
  manager_.stopping(limit);
  std::atomic<bool> over{false};
  std::thread second{[&] { // a second signal ends the timeout
    while (!over) switch (signals_.wait()) {
      case signal_watch::event::terminate:
        node_.hurry();
        break;
      case signal_watch::event::hang_up:
        if (ready_) node_.reload(); // refused, with a line that says so
        break;
      case signal_watch::event::ended:
        break;
      }
  }};
  const bool complete = node_.drain(limit);
  over = true;
  signals_.end();
  second.join();
  spdlog::info("drained complete={}", complete);
  return complete;
}

} // namespace

int serve(const configuration_flags& flags) {
  const auto made = load_configuration(flags);
  const auto& options = made.value;
  tune_heap();
  const auto files = allow_open_files();
  const service_manager manager;
  signal_watch signals;
  std::atomic<bool> failed{false};
  configure_log(options.log);
  warn_of_few_files(files);

  actors::node n{options};
  n.on_end([&](bool broken) {
    failed = broken;
    signals.end();
  });
  auto again = flags.inputs();
  // The file of the start, not the next one of the search while it is missing.
  if (!made.files.empty()) again.file = made.files.front();
  n.reload_from([again] { return config::load(again); },
                [](const config::settings& x) { set_log_level(x.log.level); });
  n.connect_with(actors::data_plane_links(options.net.listen));
  service_run run{n, options, signals, manager};
  run.start();
  run.wait();
  if (failed) {
    spdlog::critical("the pipeline cannot be kept alive; exiting");
    n.drain(std::chrono::milliseconds{0});
    return 70;
  }
  return run.drain() ? 0 : 75;
}

} // namespace lamella::cli
