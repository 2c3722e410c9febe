/// The flags of `lamella bench serve`.
#include "cli/app.hpp"
#include "cli/bench/bench_limits.hpp"
#include "cli/bench/bench_load_flags.hpp"
#include "cli/bench/bench_report.hpp"

#include <cstdio>

namespace lamella::cli {

namespace {

constexpr int exit_interrupted = 130;

/// `ttft:500` and so on.
std::map<std::string, double> goodput_limits(const std::vector<std::string>& words) {
  std::map<std::string, double> limits;
  for (const auto& word : words) {
    const auto colon = word.find(':');
    const auto name = word.substr(0, colon);
    size_t used = 0;
    double limit = 0;
    const auto number = colon == std::string::npos ? std::string{} : word.substr(colon + 1);
    try {
      limit = std::stod(number, &used);
    } catch (const std::exception&) {
      used = std::string::npos;
    }
    const bool known = name == "ttft" || name == "tpot" || name == "e2el";
    if (!known || used != number.size() || !(limit > 0) || limit > 1e9)
      throw command_error{exit_usage, "--goodput: '" + word + "' is not a limit",
                          "write ttft:MS, tpot:MS or e2el:MS, such as --goodput ttft:500 tpot:50"};
    limits[name] = limit;
  }
  return limits;
}

int bench_serve(const server_choice& server, bench_serve_options options,
                const std::vector<bench_limit>& limits) {
  if (!options.save.empty()) save_result(options.save, "{}"); // better to fail before the run
  const auto result = run_bench(server, options);
  const auto summary = summarize(result, options);
  if (!options.save.empty()) save_result(options.save, bench_json(summary, result, options, true));
  const auto shown = options.json ? bench_json(summary, result, options, false) + "\n"
                                  : console_block(summary, result, options);
  std::fputs(shown.c_str(), stdout);
  if (result.interrupted) return exit_interrupted;
  const auto broken = broken_limits(limits, summary);
  for (const auto& x : broken) print_error(x, {});
  const bool good = summary.failed == 0 && summary.completed > 0 && broken.empty();
  return good ? exit_success : exit_failure;
}

} // namespace

run_function setup_bench_serve(CLI::App& app) {
  auto server = add_server_flags(app);
  auto options = std::make_shared<bench_serve_options>();
  auto goodput = std::make_shared<std::vector<std::string>>();
  add_load_flags(app, *options);
  app.add_option("--goodput", *goodput, "Count requests within all of ttft:MS tpot:MS e2el:MS")
      ->type_name("LIMIT...");
  app.add_flag("--json", options->json, "Write JSON");
  app.add_option("--save", options->save, "Also write JSON with every request to this file")
      ->type_name("FILE");
  auto limits = std::make_shared<std::vector<std::string>>();
  app.add_option("--fail-if", *limits,
                 "End with 1 if the result is beyond a limit, such as 'ttft_p99>500ms' or "
                 "'output_throughput<1000'; may be repeated")
      ->type_name("FIGURE>LIMIT...");
  return [server, options, goodput, limits] {
    options->goodput = goodput_limits(*goodput);
    options->command_line = own_command_line();
    std::vector<bench_limit> read;
    for (const auto& text : *limits) read.push_back(read_limit(text));
    return bench_serve(*server, *options, read);
  };
}

} // namespace lamella::cli
