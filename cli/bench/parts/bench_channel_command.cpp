/// The flags of `lamella bench channel`.
#include "cli/app.hpp"
#include "cli/bench/parts/bench_channel.hpp"
#include "cli/commands.hpp"

namespace lamella::cli {

run_function setup_bench_channel(CLI::App& app) {
  auto options = std::make_shared<bench_channel_options>();
  app.add_option("--tier", options->tiers, "Tiers to measure; by default all that work here")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->check(CLI::IsMember({"in_process", "shm", "tcp", "verbs_staged"}));
  app.add_option("--max-bytes", options->bytes_max, "Largest message")
      ->type_name("BYTES")
      ->check(CLI::Range(size_t{64}, size_t{64} << 20));
  app.add_flag("--json", options->json, "Write JSON");
  return [options] { return bench_channel(*options); };
}

} // namespace lamella::cli
