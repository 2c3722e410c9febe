#include "cli/plan/bench_profile.hpp"

#include "actors/node/pipeline_parts.hpp"
#include "actors/request/service.hpp"
#include "cli/commands.hpp"
#include "cli/data_files.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <tuple>

namespace lamella::cli {

scheduler::served_profile profile_facts(const actors::node& n, const config::settings& settings) {
  const auto server = n.server();
  const auto& layout = n.parts().layout;
  uint32_t tables = 0;
  for (uint32_t i = 0; i < layout.tables(); ++i) tables += layout.in_use(i) ? 1 : 0;
  if (server->batches.size() != 1 || settings.pools.prefill.members != 1 || tables != 1)
    throw command_error{
        exit_configuration,
        "a profile covers one batch, one prefill worker and one slot table, but this "
        "service has "
            + std::to_string(server->batches.size()) + ", "
            + std::to_string(settings.pools.prefill.members) + " and " + std::to_string(tables),
        "set batching.batches, pools.prefill.members and "
        "pools.attention.partition accordingly"};
  scheduler::served_profile p;
  p.model = server->model_name;
  p.kernels = n.parts().engine->ops().name;
  p.threads = n.parts().engine->threads();
  p.limits = {server->slots, server->window_slots, settings.batching.prefill_chunk_tokens,
              settings.batching.max_batch, server->context_tokens};
  return p;
}

std::vector<scheduler::sharing_point> rates_of(const std::vector<sharing_sample>& samples) {
  struct sum {
    double decode = 0, prefill = 0, count = 0;
  };
  std::map<std::tuple<uint32_t, double, double>, sum> by_place;
  for (const auto& x : samples) {
    auto& s = by_place[{x.rows, x.context, x.prompt}];
    s.decode += x.iterations * x.alone_s / x.prompt_s;
    s.prefill += x.prompt_alone_s / x.prompt_s;
    s.count += 1;
  }
  // Noise may make something look quicker in company than alone.
  const auto rate = [](double sum, double count) { return std::clamp(sum / count, 1e-3, 1.0); };
  std::vector<scheduler::sharing_point> all;
  for (const auto& [at, s] : by_place)
    all.push_back({static_cast<double>(std::get<0>(at)), rate(s.decode, s.count),
                   rate(s.prefill, s.count), std::get<1>(at), std::get<2>(at)});
  return all;
}

void save_profile(const std::string& path, const scheduler::served_profile& profile) {
  std::ofstream out{path, std::ios::binary | std::ios::trunc};
  scheduler::write_served_profile(out, profile);
  out.close();
  if (!out)
    throw command_error{exit_failure, "--profile: cannot write " + path,
                        "check the folder, its permissions and the free space"};
}

scheduler::served_profile load_served_profile(const std::string& path) {
  scheduler::served_profile p;
  read_data_file(path, [&](std::istream& in) {
    p = scheduler::read_served_profile(in);
    scheduler::served_cost{p}; // says now what it lacks
  });
  return p;
}

std::vector<std::string> differences(const scheduler::served_profile& measured,
                                     const scheduler::served_profile& running) {
  std::vector<std::string> all;
  const auto compare = [&](const char* what, const std::string& then, const std::string& now) {
    if (then != now)
      all.push_back(std::string{what} + ": " + then + " in the profile, " + now
                    + " in this service");
  };
  const auto number = [&](const char* what, uint32_t then, uint32_t now) {
    compare(what, std::to_string(then), std::to_string(now));
  };
  compare("model", measured.model, running.model);
  compare("kernels", measured.kernels, running.kernels);
  number("threads", measured.threads, running.threads);
  number("window_slots", measured.limits.window_slots, running.limits.window_slots);
  number("chunk_tokens", measured.limits.chunk_tokens, running.limits.chunk_tokens);
  number("context_tokens", measured.limits.context_tokens, running.limits.context_tokens);
  return all; // slots and seats may differ: they are taken from what runs
}

} // namespace lamella::cli
