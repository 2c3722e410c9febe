/// The flags of `lamella bench serve`.
#include "cli/app.hpp"
#include "cli/bench/bench_limits.hpp"
#include "cli/bench/bench_load_flags.hpp"
#include "cli/bench/load/curve.hpp"
#include "cli/bench/load/slo.hpp"
#include "cli/named_values.hpp"

#include <algorithm>
#include <cstdio>

namespace lamella::cli {

namespace {

/// What is written by --save, and by --json without `records`.
std::string text_of(const server_choice& server, const std::vector<bench_run>& runs,
                    const bench_serve_options& options, bool records) {
  if (records && options.save_format == "guidellm") return guidellm_json(server.url, runs);
  std::string list;
  for (const auto& run : runs)
    list += (list.empty() ? "" : ",")
            + (records && options.save_format == "aiperf"
                   ? aiperf_json(run)
                   : bench_json(run.summary, run.result, run.options, records));
  return options.rates.empty() ? list : "{\"version\":1,\"runs\":[" + list + "]}";
}

/// What a reader must know: of all runs once, of one of them with its rate.
void tell_notes(const std::vector<bench_run>& runs) {
  for (size_t k = 0; k < runs.size(); ++k) {
    const auto& common = runs[k].result.notes;
    for (const auto& x : runs[k].summary.warnings) {
      const bool of_all = std::find(common.begin(), common.end(), x) != common.end();
      if (!of_all)
        std::printf("note: at %g/s: %s\n", *runs[k].options.rate, x.c_str());
      else if (k == 0)
        std::printf("note: %s\n", x.c_str());
    }
  }
}

/// The runs of a sweep, told while it goes on.
std::vector<bench_run> sweep(const server_choice& server, bench_serve_options& options) {
  std::vector<bench_run> runs;
  run_sweep(server, options, [&](const bench_serve_options& mine, bench_result result) {
    auto summary = summarize(result, mine);
    runs.push_back({mine, std::move(result), std::move(summary)});
    if (options.json) return;
    if (runs.size() == 1) std::fputs(sweep_head(mine).c_str(), stdout);
    std::fputs(sweep_row(runs.back()).c_str(), stdout);
    std::fflush(stdout);
  });
  if (!options.json) tell_notes(runs);
  return runs;
}

std::vector<bench_run> measure(const server_choice& server, bench_serve_options& options) {
  if (!options.rates.empty()) return sweep(server, options);
  auto result = run_bench(server, options);
  auto summary = summarize(result, options);
  std::vector<bench_run> runs;
  runs.push_back({options, std::move(result), std::move(summary)});
  if (!options.json)
    std::fputs(console_block(runs[0].summary, runs[0].result, options).c_str(), stdout);
  return runs;
}

int bench_serve(const server_choice& server, bench_serve_options options,
                const std::vector<bench_limit>& limits) {
  // Better to fail before the run.
  if (!options.save.empty()) save_result(options.save, "{}", "--save");
  if (!options.svg.empty())
    save_result(options.svg, "<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "--svg");
  const auto runs = measure(server, options);
  if (!options.save.empty())
    save_result(options.save, text_of(server, runs, options, true), "--save");
  if (!options.svg.empty()) save_result(options.svg, latency_curve(runs), "--svg");
  if (options.json) std::fputs((text_of(server, runs, options, false) + "\n").c_str(), stdout);
  bool good = !runs.empty();
  for (const auto& run : runs) {
    if (run.result.interrupted) return exit_interrupted;
    const auto broken = broken_limits(limits, run.summary);
    for (const auto& x : broken) {
      char at[40] = "";
      if (!options.rates.empty()) std::snprintf(at, sizeof at, "at %g/s: ", *run.options.rate);
      print_error(at + x, {});
    }
    good = good && run.summary.failed == 0 && run.summary.completed > 0 && broken.empty();
  }
  return good ? exit_success : exit_failure;
}

void add_rates(CLI::App& app, bench_serve_options& options) {
  constexpr double least = 1e-3, most = 1e5;
  auto* rates =
      app.add_option("--rates", options.rates,
                     "A run at each of these rates of arrivals, one after the other: 1,2,4,8")
          ->type_name("R,R...")
          ->delimiter(',')
          ->check(CLI::Range(least, most))
          ->excludes(app.get_option("--rate"))
          ->excludes(app.get_option("--concurrency"))
          ->excludes(app.get_option("--trace-speed"));
  constexpr int most_rates = 100;
  rates->expected(1, most_rates);
  app.add_option("--svg", options.svg,
                 "Draw latency against throughput of --rates to this file, as SVG")
      ->type_name("FILE")
      ->needs(rates);
}

void add_turns(CLI::App& app, bench_serve_options& options) {
  constexpr uint32_t turns_max = 1000;
  constexpr double think_max = 86'400;
  auto* turns =
      app.add_option("--turns", options.turns,
                     "Ask up to so many turns of each conversation of --dataset, each with the "
                     "answers before it; --requests counts conversations then (default: 1)")
          ->type_name("N")
          ->check(CLI::Range(uint32_t{1}, turns_max))
          ->needs(app.get_option("--dataset"));
  app.add_option("--think-time", options.think_s,
                 "Mean pause of a user between an answer and the next turn; pauses are exponential "
                 "(default: 0)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, think_max))
      ->needs(turns);
}

/// Throws command_error (2) where turns cannot be what is asked for with them.
void check_turns(const bench_serve_options& options) {
  if (options.turns == 1) return;
  if (options.endpoint != bench_endpoint::chat)
    throw command_error{exit_usage, "--turns: completions have no turns",
                        "add --endpoint chat, or leave --turns out"};
  if (options.slowdowns)
    throw command_error{exit_usage,
                        "--turns: what a turn takes alone, with its beginning in a cache, is not "
                        "measured, so turns have no slowdown",
                        "give limits in milliseconds, such as ttft:500"};
}

void add_outputs(CLI::App& app, bench_serve_options& options) {
  app.add_flag("--json", options.json, "Write JSON");
  auto* save =
      app.add_option("--save", options.save, "Also write JSON with every request to this file")
          ->type_name("FILE");
  app.add_option("--save-format", options.save_format,
                 "Names and form of --save: flat (default; those of vLLM's benchmark), aiperf or "
                 "guidellm")
      ->type_name("NAME")
      ->check(CLI::IsMember({"flat", "aiperf", "guidellm"}))
      ->needs(save);
}

} // namespace

run_function setup_bench_serve(CLI::App& app) {
  auto server = add_server_flags(app);
  auto options = std::make_shared<bench_serve_options>();
  auto goodput = std::make_shared<std::vector<std::string>>();
  add_load_flags(app, *options);
  add_rates(app, *options);
  add_turns(app, *options);
  app.add_option("--goodput", *goodput,
                 "Count requests within all of ttft:MS tpot:MS e2el:MS, or of slowdowns against a "
                 "request alone, as ttft:2x")
      ->type_name("LIMIT...");
  add_outputs(app, *options);
  auto limits = std::make_shared<std::vector<std::string>>();
  app.add_option("--fail-if", *limits,
                 "End with 1 if the result is beyond a limit, such as 'ttft_p99>500ms' or "
                 "'output_throughput<1000'; may be repeated")
      ->type_name("FIGURE>LIMIT...");
  return [server, options, goodput, limits] {
    options->goodput = read_slos(*goodput);
    options->command_line = own_command_line();
    std::vector<bench_limit> read;
    for (const auto& text : *limits) read.push_back(read_limit(text));
    options->slowdowns = !options->goodput.slowdown.empty()
                         || std::any_of(read.begin(), read.end(), [](const auto& x) {
                              return x.figure.find("_slowdown_") != std::string::npos;
                            });
    check_turns(*options);
    return bench_serve(*server, *options, read);
  };
}

} // namespace lamella::cli
