/// `lamella config check`: what serve would refuse, without serving.
#include "actors/machine/devices.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/protocol/prefills.hpp"
#include "base/errno_text.hpp"
#include "base/json_writer.hpp"
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/configuration.hpp"
#include "config/streams.hpp"
#include "model/program/load.hpp"
#include "net/api/api_keys.hpp"
#include "scheduler/head_partition.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lamella::cli {
namespace {

using problems = std::vector<command_error::problem>;

struct listen_trial {
  std::string why;     ///< empty, or why nothing can listen there
  bool in_use = false; ///< because somebody listens there now
};

listen_trial try_to_listen(const std::string& where) {
  const auto address = config::parse_address(where);
  if (!address) return {"is not an address"};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const auto port = std::to_string(address->port);
  if (const int failure = getaddrinfo(address->host.c_str(), port.c_str(), &hints, &found);
      failure != 0)
    return {gai_strerror(failure)};
  listen_trial result{"has no address"};
  for (const auto* each = found; each != nullptr; each = each->ai_next) {
    const int fd = socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
    const int on = 1;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool bound =
        fd >= 0 && bind(fd, each->ai_addr, each->ai_addrlen) == 0 && ::listen(fd, 1) == 0;
    result = bound ? listen_trial{} : listen_trial{errno_text(), errno == EADDRINUSE};
    if (fd >= 0) close(fd);
    if (bound) break;
  }
  freeaddrinfo(found);
  return result;
}

void check_listener(const std::string& key, const std::string& listen, bool runs, problems& found) {
  const auto trial = try_to_listen(listen);
  if (trial.why.empty() || (runs && trial.in_use)) return;
  found.push_back({key + ": cannot listen on " + listen + ": " + trial.why,
                   trial.in_use ? "stop the process that listens there, choose another address, or "
                                  "check with --reload if that process is the service of this file"
                                : "choose an address of this machine and a port that you may use"});
}

void check_keys(const std::string& key, const std::filesystem::path& file, problems& found) {
  if (file.empty()) return;
  try {
    net::api_keys::from_file(file);
  } catch (const std::runtime_error& e) {
    found.push_back({key + ": " + e.what(), "write one key per line into it; # starts a comment"});
  }
}

/// Devices of this machine; those of other hosts are known to their workers alone.
void check_device(const std::string& key, const config::pool_settings& pool, uint32_t ranks,
                  problems& found) {
  if (pool.placement == config::placement::remote) return;
  for (const auto& device : config::devices_of_ranks(pool.device, ranks)) {
    const auto why = actors::why_no_device(device);
    if (why.empty()) continue;
    found.push_back({key + ".device: " + why, "use host or auto"});
    return;
  }
}

/// Where the members of a pool compute, in words.
std::string place_of(const config::pool_settings& pool) {
  switch (pool.placement) {
  case config::placement::in_process:
    return pool.device;
  case config::placement::local:
    return pool.device + ", a process each";
  case config::placement::remote:
    return pool.device + " of other hosts";
  }
  return pool.device;
}

struct plan {
  std::string model_file;
  std::string architecture;
  uint64_t weight_bytes = 0;
  uint64_t token_bytes = 0;      ///< of K and V
  uint64_t slot_bytes = 0;       ///< of one member
  scheduler::kv_layout layout{}; ///< of the attention pool
  uint64_t kv_bytes() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < layout.tables(); ++i)
      sum += actors::stored_bytes(layout, i, token_bytes);
    return sum;
  }
  uint64_t memory_limit = 0;
};

plan make_plan(const config::settings& s, problems& found) {
  plan made;
  const auto path = s.model.path.empty() ? model::default_model_path() : s.model.path;
  made.model_file = path.string();
  made.memory_limit = actors::memory_limit();
  if (!std::filesystem::exists(path)) {
    found.push_back({"model.path: " + path.string() + " does not exist",
                     s.model.path.empty() ? "run 'lamella model fetch'" : "check the path"});
    return made;
  }
  try {
    const auto opened = model::load_model(path);
    const auto& spec = opened.program->spec;
    for (const auto& [name, pool] : s.pools.attention.resolved())
      for (const auto& [key, members] :
           {std::pair{"members", std::max(1u, pool.members)},
            std::pair{"max", s.pools.attention.cells.empty() // else of all cells together
                                 ? std::max(1u, pool.most)
                                 : 1}})
        if (const auto why = pool.partition == config::partition::heads
                                 ? scheduler::refuse_partition(spec.kv_heads, members)
                                 : std::nullopt)
          found.push_back({fmt::format("pools.attention.{} ({}): {}", key, name, *why),
                           "choose a number that divides the KV heads, or partition: requests"});
    try {
      model::rank_program(opened, s.pools.model.tensor_parallel);
    } catch (const std::invalid_argument& e) {
      found.push_back({std::string{"pools.model.tensor_parallel: "} + e.what(),
                       "choose a number that divides the heads and the feed-forward width"});
    }
    if (s.model.context_tokens && *s.model.context_tokens > spec.context_tokens)
      found.push_back({"model.context_tokens: " + std::to_string(*s.model.context_tokens)
                           + " is more than the " + std::to_string(spec.context_tokens) + " "
                           + std::string{spec.context_bound()},
                       "lower it or set it to auto"});
    made.architecture = spec.architecture;
    made.weight_bytes = opened.file->file_bytes();
    made.token_bytes = actors::token_bytes(s, spec);
    made.slot_bytes = actors::slot_bytes(s, spec);
    made.layout = actors::layout_of(s, spec, actors::memory_limit() / 4);
    if (auto why = actors::why_too_small(s, spec, made.layout); !why.empty())
      found.push_back({why, ""});
  } catch (const std::exception& e) {
    found.push_back({"model.path: " + std::string{e.what()}, "download the file again"});
    return made;
  }
  if (auto why = actors::why_too_large(s, made.weight_bytes, made.token_bytes, made.layout);
      !why.empty())
    found.push_back({"kv.bytes: " + why, "lower kv.bytes or set it to auto"});
  return made;
}

std::string megabytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

void print_plan(const config::loaded& from, const plan& x) {
  const auto& s = from.value;
  for (const auto& file : from.files) std::printf("read      %s\n", file.c_str());
  std::printf("API       %s\nadmin     %s\n", s.http.listen.c_str(), s.admin.listen.c_str());
  std::printf("model     %s (%s, %s)\n", x.model_file.c_str(), x.architecture.c_str(),
              megabytes(x.weight_bytes).c_str());
  const bool chosen = s.batching.pipeline == config::pipeline::automatic;
  std::printf("replicas  %u on %s, batches %s%u of up to %u requests\n", s.pools.model.members,
              place_of(s.pools.model).c_str(), chosen ? "at most " : "",
              s.batching.batches_for(s.pools.model.members), s.batching.max_batch);
  uint32_t cell = 0;
  for (const auto& [name, pool] : s.pools.attention.resolved()) {
    const auto slots = x.layout.cells.at(cell++).slots;
    const bool by_heads = pool.partition == config::partition::heads;
    const auto bytes = x.token_bytes * slots / (by_heads ? std::max(1u, pool.members) : 1);
    std::printf("attention %s: %u members%s by %s on %s, %u slots, %s of KV each\n", name.c_str(),
                pool.members, pool.parity ? " and one with parity" : "",
                by_heads ? "heads" : "requests", place_of(pool).c_str(), slots,
                megabytes(bytes).c_str());
  }
  if (config::prompt_streams(s) > 0 || config::prompt_batches(s) > 0)
    std::printf("prefill   %u workers\n", s.pools.prefill.members);
  else
    std::printf("prefill   in the launches of batches\n");
  std::printf("memory    %s of %s\nok\n", megabytes(x.weight_bytes + x.kv_bytes()).c_str(),
              megabytes(x.memory_limit).c_str());
}

void print_json(const config::loaded& from, const plan& x) {
  json_writer out;
  out.begin_object().member("version", 1).member("ok", true).key("files").begin_array();
  for (const auto& file : from.files) out.value(file.string());
  out.end_array().member("model", x.model_file).member("architecture", x.architecture);
  out.member("weight_bytes", x.weight_bytes)
      .member("slots", x.layout.largest())
      .member("slot_bytes", x.slot_bytes);
  out.member("memory_limit_bytes", x.memory_limit).key("pools").begin_array();
  const auto pool = [&](const char* role, const std::string& name,
                        const config::pool_settings& of) {
    out.begin_object()
        .member("role", role)
        .member("name", name)
        .member("members", of.members)
        .member("device", of.device)
        .end_object();
  };
  pool("model", "main", from.value.pools.model);
  for (const auto& [name, each] : from.value.pools.attention.resolved())
    pool("attention", name, each);
  pool("prefill", "main", from.value.pools.prefill);
  std::printf("%s\n", out.end_array().end_object().text().c_str());
}

} // namespace

run_function setup_config_check(CLI::App& app) {
  auto flags = add_configuration_flags(app);
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Write the plan as JSON");
  auto runs = std::make_shared<bool>(false);
  app.add_flag("--reload", *runs, "For a service that runs: its addresses may be in use");
  return [flags, json, runs] {
    const auto made = load_configuration(*flags);
    problems found;
    check_keys("http.api_keys_file", made.value.http.api_keys_file, found);
    check_keys("admin.api_keys_file", made.value.admin.api_keys_file, found);
    check_listener("http.listen", made.value.http.listen, *runs, found);
    check_listener("admin.listen", made.value.admin.listen, *runs, found);
    const auto& pools = made.value.pools;
    check_device("pools.model", pools.model, pools.model.tensor_parallel, found);
    for (const auto& [name, cell] : pools.attention.resolved())
      check_device(pools.attention.key_of(name), cell, 1, found);
    check_device("pools.prefill", pools.prefill, pools.model.tensor_parallel, found);
    const auto x = make_plan(made.value, found);
    if (!found.empty()) throw command_error{exit_configuration, std::move(found)};
    if (*json)
      print_json(made, x);
    else
      print_plan(made, x);
    return int{exit_success};
  };
}

} // namespace lamella::cli
