/// `lamella doctor`: what the probes of this machine say.
#include "actors/machine/sizing.hpp"
#include "actors/machine/topology.hpp"
#include "base/json_writer.hpp"
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "gpu/cuda_module.hpp"
#include "gpu/kernels/operators.hpp"
#include "gpu/ring/doorbell.hpp"
#include "net/data_plane/data_plane.hpp"
#include "net/link/shm_segment.hpp"
#include "net/rdma/fhbn_probe.hpp"
#include "net/rdma/open_verbs.hpp"
#include "net/rdma/verbs.hpp"

#include <cstdio>
#include <set>

namespace lamella::cli {
namespace {

/// One thing that was tried.
struct finding {
  std::string part; ///< cpu, shm, tcp, verbs, fhbn or cuda
  std::string name;
  bool passed = false;
  std::string reason; ///< what was found, or what is missing and what would help
};

/// Whether something works that throws when it does not.
template <class Try> finding attempt(std::string part, std::string name, std::string well, Try f) {
  try {
    f();
    return {std::move(part), std::move(name), true, std::move(well)};
  } catch (const std::exception& e) {
    return {std::move(part), std::move(name), false, e.what()};
  }
}

/// Where this process may run, and how many threads compute by default.
void add_processors(std::vector<finding>& all) {
  const auto machine = actors::own_topology();
  std::string text;
  for (const auto& node : actors::by_node(machine))
    text += (text.empty() ? "NUMA node: " : "; ") + actors::list_of(node);
  std::set<unsigned> cores;
  for (const auto& x : machine) cores.insert(x.core);
  all.push_back({"cpu", "processors", true,
                 std::to_string(machine.size()) + " on " + std::to_string(cores.size()) + " cores, "
                     + std::to_string(actors::usable_processors()) + " compute by default; "
                     + text});
}

/// Kernel sets of host devices, the fastest first.
void add_kernels(std::vector<finding>& all) {
  const auto* chosen = gpu::find_operators("auto", nullptr);
  for (const std::string name : {"amx", "avx512", "avx2", "portable"}) {
    std::string reason;
    const auto* set = gpu::find_operators(name, &reason);
    if (set != nullptr) reason = set == chosen ? "chosen by numerics.operators: auto" : "can run";
    all.push_back({"cpu", "kernel set " + name, set != nullptr, reason});
  }
}

void add_verbs(std::vector<finding>& all) {
  const auto seen = net::look_for_verbs();
  if (!seen.trouble.empty()) all.push_back({"verbs", "adapter", false, seen.trouble});
  for (const auto& port : seen.ports)
    all.push_back(
        {"verbs", port.device, port.trouble.empty(),
         port.trouble.empty() ? "links to other hosts use the first such port" : port.trouble});
}

void add_fhbn(std::vector<finding>& all) {
  const auto report = net::probe_rdma(net::load_fhbn_library());
  for (const auto& step : report.steps)
    all.push_back({"fhbn", step.name, step.passed, step.reason});
  all.push_back({"fhbn", "highest tier this host allows", report.tier != net::rdma_tier::none,
                 std::string{net::name_of(report.tier)}});
}

void add_cuda(std::vector<finding>& all) {
  std::string reason;
  const auto* module = gpu::find_cuda_module(&reason);
  all.push_back({"cuda", "CUDA module of the program", module != nullptr,
                 module != nullptr ? "loaded" : reason});
  if (module == nullptr) return;
  const auto count = module->count(&reason);
  all.push_back(
      {"cuda", "devices", count > 0, count > 0 ? std::to_string(count) + " found" : reason});
  for (unsigned a = 0; a < count; ++a)
    for (unsigned b = a + 1; b < count; ++b) {
      const auto why = gpu::why_apart(a, b);
      all.push_back({"cuda",
                     "memory of cuda:" + std::to_string(a) + " and cuda:" + std::to_string(b),
                     why.empty(),
                     why.empty() ? "peer access both ways" : why + "; rings are in host memory"});
    }
}

std::vector<finding> examine() {
  std::vector<finding> all;
  add_processors(all);
  add_kernels(all);
  all.push_back(attempt("shm", "shared memory", "sealed segments and futexes", [] {
    const net::shm_segment segment{gpu::ring_terms{}};
    const gpu::doorbell bell;
  }));
  all.push_back(attempt("tcp", "loopback", "a port can be opened",
                        [] { net::data_plane::try_listen("127.0.0.1:0"); }));
  add_verbs(all);
  add_fhbn(all);
  add_cuda(all);
  return all;
}

std::string as_json(const std::vector<finding>& all) {
  json_writer out;
  out.begin_object().member("version", 1).key("findings").begin_array();
  for (const auto& x : all)
    out.begin_object()
        .member("part", x.part)
        .member("name", x.name)
        .member("passed", x.passed)
        .member("reason", x.reason)
        .end_object();
  return out.end_array().end_object().take();
}

} // namespace

run_function setup_doctor(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Write JSON");
  return [json] {
    const auto all = examine();
    if (*json) {
      std::printf("%s\n", as_json(all).c_str());
      return int{exit_success};
    }
    for (const auto& x : all)
      std::printf("%-6s %-8s %s: %s\n", x.part.c_str(), x.passed ? "ok" : "missing", x.name.c_str(),
                  x.reason.c_str());
    return int{exit_success};
  };
}

} // namespace lamella::cli
