/// The flags of `lamella trace`.
#include "cli/app.hpp"
#include "cli/client/admin.hpp"
#include "cli/client/table.hpp"
#include "cli/client/trace.hpp"
#include "cli/client/trace_picture.hpp"
#include "cli/http_status.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace lamella::cli {

namespace {

constexpr double least_seconds = 0.05, most_seconds = 30;
constexpr double least_window = 1e-5, most_window = 30;
/// For workers to hand over what they recorded, and for the answer to come.
constexpr std::chrono::seconds hand_over{30};

struct trace_options {
  admin_choice admin;
  std::string length = "0.5s", out, svg, window, at, from;
};

/// Writes a file anew, or only shows that it can be written, which is better known before a
/// recording.
void write(const std::string& path, const std::optional<std::string>& text) {
  std::ofstream out{path, std::ios::binary | (text ? std::ios::trunc : std::ios::app)};
  if (!(out << text.value_or("")) || !out.flush())
    throw command_error{exit_failure, path + ": cannot write the file",
                        "name a file in a folder that exists, with room for "
                            + (text ? std::to_string(text->size()) + " bytes" : "a recording")};
}

/// Files that were made to show that they can be written. Those that nothing was written into go
/// when the command ends.
class made_files {
public:
  made_files() = default;
  made_files(const made_files&) = delete;
  made_files& operator=(const made_files&) = delete;
  ~made_files() {
    std::error_code gone;
    for (const auto& path : paths_)
      if (std::filesystem::is_empty(path, gone)) std::filesystem::remove(path, gone);
  }

  /// Throws command_error where it cannot be written.
  void check(const std::string& path) {
    std::error_code none;
    const auto before = std::filesystem::symlink_status(path, none).type();
    write(path, std::nullopt);
    if (before == std::filesystem::file_type::not_found) paths_.push_back(path);
  }

private:
  std::vector<std::string> paths_;
};

std::string read(const std::string& path) {
  std::ifstream in{path, std::ios::binary};
  if (!in)
    throw command_error{exit_missing_input, path + ": cannot read the file",
                        "--from names a file that 'lamella trace -o FILE' wrote"};
  return {std::istreambuf_iterator<char>{in}, {}};
}

std::string record(const trace_options& options, double seconds) {
  const auto client = options.admin.client();
  const auto limit =
      admin_timeout + hand_over + std::chrono::milliseconds{static_cast<int64_t>(seconds * 1e3)};
  net::http_reply reply;
  try {
    reply = client->post(fmt::format("/admin/trace?for={}", seconds), "", limit);
  } catch (const net::http_call_error& e) {
    throw admin_unreachable(e);
  }
  if (reply.status == http_status::not_found)
    throw command_error{exit_failure, "the server does not record traces",
                        "--admin must be the admin.listen of a 'lamella serve' of this version"};
  if (reply.status != http_status::ok) throw admin_refused(reply);
  return std::move(reply.body);
}

/// Who was recorded, and what is missing.
void report(const trace_file& trace) {
  table workers{{"SEAT", "SPANS", "DROPPED", "CLOCK"}};
  uint64_t spans = 0;
  for (const auto& x : trace.sources) {
    spans += x.spans;
    workers.add(
        {x.seat, std::to_string(x.spans), std::to_string(x.dropped),
         x.clock == "measured" ? fmt::format("measured, within {:.0f} us", x.error_us) : x.clock});
  }
  std::fputs(workers.text().c_str(), stdout);
  for (const auto& x : trace.left_out) std::fprintf(stderr, "lamella: left out: %s\n", x.c_str());
  if (spans == 0)
    std::fprintf(stderr, "lamella: nothing ran meanwhile; send requests while it records\n");
}

/// What to draw, in seconds.
struct drawn_time {
  double length = 0, at = -1; ///< 0 and below 0: not asked for
};

drawn_time drawn_by(const trace_options& options) {
  drawn_time x;
  if (!options.window.empty())
    x.length = trace_seconds(options.window, "--window", least_window, most_window);
  if (!options.at.empty()) x.at = trace_seconds(options.at, "--at", 0, most_window);
  return x;
}

/// Throws command_error (2) where nothing of a recording of that length would be drawn.
void check_begin(const drawn_time& drawn, double seconds) {
  if (drawn.at >= seconds)
    throw command_error{exit_usage,
                        fmt::format("--at: {} s is behind the end of the recording, which is {} s "
                                    "long",
                                    drawn.at, seconds),
                        "give a time within the recording, counted from its begin"};
}

int trace(const trace_options& options, double seconds, const drawn_time& drawn) {
  const bool recorded = options.from.empty();
  const auto out = options.out.empty() && options.svg.empty() ? "lamella-trace.json" : options.out;
  if (recorded) check_begin(drawn, seconds);
  made_files made;
  for (const auto& path : {recorded ? out : std::string{}, options.svg})
    if (!path.empty()) made.check(path);
  const auto text = recorded ? record(options, seconds) : read(options.from);
  const auto what = read_trace(text, recorded ? "the server's answer" : options.from);
  report(what);
  if (recorded && !out.empty()) {
    write(out, text);
    std::printf("%s: open it at https://ui.perfetto.dev\n", out.c_str());
  }
  check_begin(drawn, what.seconds); // what was recorded is written by now
  if (!options.svg.empty()) {
    write(options.svg,
          trace_picture(what, choose_window(what, drawn.length * 1e6, drawn.at * 1e6)));
    std::printf("%s: open it in a browser\n", options.svg.c_str());
  }
  return exit_success;
}

} // namespace

run_function setup_trace(CLI::App& app) {
  auto options = std::make_shared<trace_options>();
  add_admin_flags(app, options->admin);
  auto* length = app.add_option("--for", options->length, "How long to record: 50ms to 30s")
                     ->type_name("TIME")
                     ->capture_default_str();
  auto* out = app.add_option("-o,--out", options->out,
                             "Write the trace there, for Perfetto (lamella-trace.json where "
                             "neither this nor --svg is given)")
                  ->type_name("FILE");
  auto* svg = app.add_option("--svg", options->svg, "Draw the pipeline there")->type_name("FILE");
  app.add_option("--window", options->window,
                 "How much time to draw: 20ms; two iterations where it is left out")
      ->type_name("TIME")
      ->needs(svg);
  app.add_option("--at", options->at, "Draw from there on, counted from the begin of the recording")
      ->type_name("TIME")
      ->needs(svg);
  app.add_option("--from", options->from, "Draw a trace that was written before")
      ->type_name("FILE")
      ->needs(svg)
      ->excludes(length)
      ->excludes(out);
  return [options] {
    // Mistakes come before a recording.
    const auto seconds = trace_seconds(options->length, "--for", least_seconds, most_seconds);
    return trace(*options, seconds, drawn_by(*options));
  };
}

} // namespace lamella::cli
