#include "cli/bench/bench_load_flags.hpp"

#include "cli/commands.hpp"
#include "cli/named_values.hpp"

#include <fstream>

namespace lamella::cli {

namespace {

/// Flags that say what is asked.
void add_sources(CLI::App& app, bench_serve_options& options, CLI::Option* users,
                 CLI::Option* rate) {
  auto* input = app.add_option_function<std::string>(
      "--input-tokens,--input-len",
      [&options](const std::string& text) {
        options.input_len = length_distribution::read(text, "--input-tokens");
      },
      "Tokens of a synthetic prompt: N, uniform:LOW,HIGH, normal:MEAN,STD or lognormal:MEAN,STD, "
      "the last two also with ,LOW,HIGH (default: 128)");
  auto* output = app.add_option_function<std::string>(
      "--output-tokens,--output-len",
      [&options](const std::string& text) {
        options.output_len = length_distribution::read(text, "--output-tokens");
        options.output_len_given = true;
      },
      "Output tokens of a request, as --input-tokens (default: 128)");
  input->type_name("LENGTH");
  output->type_name("LENGTH");
  auto* file = app.add_option("--prompt-file", options.prompt_file,
                              "Take prompts from this file, one per line, in turn")
                   ->type_name("FILE")
                   ->excludes(input);
  auto* dataset =
      app.add_option("--dataset", options.dataset,
                     "Take the first question of each conversation of this file, and the length of "
                     "its answer: a JSON list or JSON lines, as ShareGPT's; plain, gzip or xz")
          ->type_name("FILE")
          ->excludes(input)
          ->excludes(file);
  auto* trace =
      app.add_option(
             "--trace", options.trace,
             "Take lengths, and without --rate or --concurrency arrivals too, from "
             "a trace: a file or a name as in `lamella simulate`; equal hash_ids give equal text")
          ->type_name("TRACE")
          ->excludes(input)
          ->excludes(output)
          ->excludes(file)
          ->excludes(dataset);
  constexpr double least = 1e-3, most = 1e6;
  app.add_option("--trace-speed", options.trace_speed,
                 "Let the arrivals of the trace come so many times as fast (default: 1)")
      ->type_name("X")
      ->check(CLI::Range(least, most))
      ->needs(trace)
      ->excludes(users)
      ->excludes(rate);
}

} // namespace

void add_load_flags(CLI::App& app, bench_serve_options& options) {
  const auto number = [&](const char* flag, auto& to, const char* what, uint64_t least,
                          uint64_t most) {
    return app.add_option(flag, to, what)->type_name("N")->check(CLI::Range(least, most));
  };
  constexpr uint64_t users_max = 100'000, requests_max = 100'000'000;
  constexpr double seconds_max = 1e6, rate_max = 1e5, least = 1e-3;
  app.add_option("--model", options.model, "The model (default: the first the server lists)")
      ->type_name("NAME");
  const std::map<std::string, bench_endpoint> endpoints{
      {"completions", bench_endpoint::completions}, {"chat", bench_endpoint::chat}};
  app.add_option("--endpoint", options.endpoint, "completions (default) or chat")
      ->type_name("NAME")
      ->transform(one_of(endpoints));
  auto* users = number(
      "--concurrency", options.concurrency,
      "Closed loop: concurrent users, each with one request in flight (default: 8)", 1, users_max);
  auto* rate = app.add_option("--rate", options.rate, "Open loop: Poisson arrivals per second")
                   ->type_name("R")
                   ->check(CLI::Range(least, rate_max))
                   ->excludes(users);
  number("--seed", options.seed, "Seed of prompts and arrivals (default: 0)", 0, UINT64_MAX);
  number("--requests", options.requests,
         "Total number of requests (default: 64, or until --duration)", 1, requests_max);
  app.add_option("--duration", options.duration_s, "Seconds after which no request is started")
      ->type_name("SECONDS")
      ->check(CLI::Range(least, seconds_max));
  users->each([&options](const std::string&) { options.concurrency_given = true; });
  add_sources(app, options, users, rate);
  constexpr uint64_t warm_up_max = 1000;
  number("--warm-up", options.warm_up, "Requests before the load, not counted (default: 1)", 1,
         warm_up_max);
  number("--max-in-flight", options.max_in_flight,
         "Open loop: cap on requests in flight; waiting counts as latency (default: 4096)", 1,
         users_max);
  app.add_option("--timeout", options.timeout_s, "Timeout of a request (default: 600)")
      ->type_name("SECONDS")
      ->check(CLI::Range(least, seconds_max));
}

std::string own_command_line() {
  std::ifstream in{"/proc/self/cmdline", std::ios::binary};
  std::string line, word;
  while (std::getline(in, word, '\0')) line += (line.empty() ? "" : " ") + word;
  return line;
}

void save_result(const std::string& path, const std::string& text, const char* flag) {
  std::ofstream out{path, std::ios::binary | std::ios::trunc};
  out << text << '\n';
  out.close();
  if (!out)
    throw command_error{exit_failure, flag + (": cannot write " + path),
                        "check the folder, its permissions and the free space"};
}

} // namespace lamella::cli
