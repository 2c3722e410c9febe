#include "cli/bench/bench_load_flags.hpp"

#include "cli/commands.hpp"
#include "cli/named_values.hpp"

#include <fstream>

namespace lamella::cli {

void add_load_flags(CLI::App& app, bench_serve_options& options) {
  const auto number = [&](const char* flag, auto& to, const char* what, uint64_t least,
                          uint64_t most) {
    return app.add_option(flag, to, what)->type_name("N")->check(CLI::Range(least, most));
  };
  constexpr uint64_t users_max = 100'000, requests_max = 100'000'000, tokens_max = 10'000'000;
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
  app.add_option("--rate", options.rate, "Open loop: Poisson arrivals per second")
      ->type_name("R")
      ->check(CLI::Range(least, rate_max))
      ->excludes(users);
  number("--seed", options.seed, "Seed of prompts and arrivals (default: 0)", 0, UINT64_MAX);
  number("--requests", options.requests,
         "Total number of requests (default: 64, or until --duration)", 1, requests_max);
  app.add_option("--duration", options.duration_s, "Seconds after which no request is started")
      ->type_name("SECONDS")
      ->check(CLI::Range(least, seconds_max));
  auto* input = number("--input-tokens", options.input_tokens,
                       "Tokens of a synthetic prompt (default: 128)", 1, tokens_max);
  number("--output-tokens", options.output_tokens, "Output tokens of a request (default: 128)", 1,
         tokens_max);
  app.add_option("--prompt-file", options.prompt_file,
                 "Take prompts from this file, one per line, in turn")
      ->type_name("FILE")
      ->excludes(input);
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

void save_result(const std::string& path, const std::string& text) {
  std::ofstream out{path, std::ios::binary | std::ios::trunc};
  out << text << '\n';
  out.close();
  if (!out)
    throw command_error{exit_failure, "--save: cannot write " + path,
                        "check the folder, its permissions and the free space"};
}

} // namespace lamella::cli
