/// The flags of `lamella simulate`.
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/plan/simulate.hpp"

namespace lamella::cli {

std::string default_model(const std::string& design) {
  if (design == "splitwise") return "BLOOM-176B";
  if (design == "neo") return "LLaMA3-8B"; // what one A10G holds with room for KV
  return "LLaMA3-70B";
}

namespace {

/// A flag that means something to some kinds of runs only: a design, `reproduce` or `replay`.
struct bound_flag {
  const char* flag;
  const char* kinds; ///< words with a space behind each
};
constexpr bound_flag bound_flags[] = {
    {"--compute", "lamina "},
    {"--memory", "lamina "},
    {"--batches", "lamina "},
    {"--replicas", "lamina "},
    {"--compute-nics", "lamina "},
    {"--memory-nics", "lamina "},
    {"--pipeline", "lamina "},
    {"--partition", "lamina "},
    {"--network", "lamina "},
    {"--overlap", "lamina "},
    {"--devices", "homogeneous "},
    {"--tensor-parallel", "homogeneous "},
    {"--stages", "lamina homogeneous "},
    {"--kv", "homogeneous "},
    {"--prompt", "splitwise "},
    {"--token", "splitwise "},
    {"--decode-key", "splitwise "},
    {"--transfer", "splitwise "},
    {"--gpu", "neo "},
    {"--cpu", "neo "},
    {"--offload", "neo "},
    {"--host-overhead", "lamina homogeneous "},
    {"--failure", "lamina homogeneous splitwise "},
    {"--scale", "lamina homogeneous "},
    {"--autoscale", "lamina homogeneous "},
    {"--slo", "lamina homogeneous "},
    {"--looks", "lamina homogeneous "},
    {"--policy", "lamina homogeneous replay "},
    {"--prefill", "lamina homogeneous "},
    {"--prefill-servers", "lamina homogeneous "},
    {"--prefix-cache", "lamina homogeneous "},
    {"--checkpoint", "splitwise "},
    {"--batching", "splitwise "},
    {"--repurpose", "splitwise "},
    {"--report", "splitwise "},
    {"--profile", "served "},
    {"--launches", "served "},
    {"--stand-backs", "served "},
    {"--tbt-target", "lamina homogeneous served "},
    {"--csv", "lamina homogeneous served "},
    {"--timeline", "lamina homogeneous served "},
    {"--hardware", "lamina homogeneous neo "},
    {"--models", "lamina homogeneous neo "},
    {"--design", "lamina homogeneous splitwise neo served "},
    {"--model", "lamina homogeneous splitwise neo "},
    {"--trace", "lamina homogeneous splitwise neo served "},
    {"--load", "lamina homogeneous splitwise neo served "},
    {"--seed", "lamina homogeneous splitwise neo served "},
    {"--json", "lamina homogeneous splitwise neo served replay "},
    {"--constant", "lamina homogeneous splitwise neo reproduce "},
    {"--markdown", "reproduce "},
    {"--svg", "reproduce "},
};

/// A flag that would change nothing is a mistake of who wrote it, not to be passed over.
void refuse_foreign_flags(const CLI::App& app, const simulate_options& o) {
  const auto kind = !o.scaling_trace.empty() ? std::string{"replay"}
                    : o.reproduce.empty()    ? o.design
                                             : std::string{"reproduce"};
  std::vector<command_error::problem> found;
  for (const auto& [flag, kinds] : bound_flags) {
    const std::string known{kinds};
    if (app.count(flag) == 0 || known.find(kind + " ") != std::string::npos) continue;
    std::string list;
    for (size_t at = 0, end; (end = known.find(' ', at)) != std::string::npos; at = end + 1)
      if (const auto word = known.substr(at, end - at); word != "reproduce" && word != "replay")
        list += (list.empty() ? "" : ", ") + word;
    found.push_back(
        {std::string{flag} + ": does not apply to "
             + (kind == "reproduce" ? "--reproduce, which has its own designs and traces"
                : kind == "replay"  ? "--scaling-trace, whose looks were taken already"
                                    : "--design " + kind),
         known == "reproduce " ? "it is for --reproduce" : "it is for --design " + list});
  }
  if (!found.empty()) throw command_error{exit_usage, std::move(found)};
}

/// A number of batches beside a pipeline that has one of its own, as batching.batches is refused.
void refuse_batches(const CLI::App& app, const simulate_options& o) {
  if (app.count("--batches") == 0 || o.batches == "auto") return;
  if (o.pipeline != "off" && o.pipeline != "auto") return;
  throw command_error{exit_usage,
                      "--batches: does not apply to --pipeline " + o.pipeline
                          + ", whose number of batches follows from the replicas",
                      "leave it out, or use --pipeline fixed or rotational"};
}

/// Flags of the autoscaler, which are for runs that have one.
void refuse_autoscaler_flags(const CLI::App& app, const simulate_options& o) {
  if (!o.scaling_trace.empty() && !o.reproduce.empty())
    throw command_error{exit_usage, "--scaling-trace: does not apply to --reproduce",
                        "give one of them"};
  if (!o.autoscale.empty()) {
    if (o.load == "saturated")
      throw command_error{exit_usage,
                          "--autoscale: does not apply to --load saturated, which wants the most "
                          "of everything",
                          "give arrivals: --load trace, or a rate such as --load 2"};
    return;
  }
  for (const char* flag : {"--slo", "--looks", "--policy"})
    if (app.count(flag) > 0 && (std::string{flag} != "--policy" || o.scaling_trace.empty()))
      throw command_error{exit_usage, std::string{flag} + ": there is no autoscaler in this run",
                          "give it pools: --autoscale memory=2..8"};
}

/// Adds the flags, in the order of --help.
class flag_adder {
public:
  flag_adder(CLI::App& app, simulate_options& o) : app_{app}, options_{o} {}
  void add_all() {
    add_decode_design();
    add_other_designs();
    add_workload();
    add_changes();
    add_autoscaler();
    add_reports();
  }

private:
  void add_decode_design();
  void add_other_designs();
  void add_workload();
  void add_changes();
  void add_autoscaler();
  void add_reports();

  CLI::Option* word(const char* flag, std::string& to, const char* what, const char* type) {
    return app_.add_option(flag, to, what)->type_name(type)->capture_default_str();
  }
  CLI::Option* choice(const char* flag, std::string& to, const char* what,
                      std::vector<std::string> all) {
    return app_.add_option(flag, to, what)
        ->check(CLI::IsMember(std::move(all)))
        ->capture_default_str();
  }
  void nics(const char* flag, uint32_t& to, const char* what) {
    app_.add_option(flag, to, what)->type_name("N")->check(CLI::Range(1u, 65'536u));
  }

  CLI::App& app_;
  simulate_options& options_;
};

/// The design, and the devices of lamina and homogeneous ones.
void flag_adder::add_decode_design() {
  choice("--design", options_.design, "Kind of design",
         {"lamina", "homogeneous", "splitwise", "neo", "served"});
  word("--compute", options_.compute, "lamina: devices that hold the weights", "COUNTxDEVICE");
  word("--memory", options_.memory, "lamina: devices that hold the KV cache", "COUNTxDEVICE");
  word("--devices", options_.devices, "homogeneous: all devices", "COUNTxDEVICE");
  app_.add_option("--tensor-parallel", options_.tensor_parallel,
                  "homogeneous: devices per server (all)")
      ->type_name("N")
      ->check(CLI::Range(1u, 4096u));
  app_.add_option("--stages", options_.stages,
                  "lamina, homogeneous: pipeline-parallel stages of a replica (server)")
      ->type_name("N")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str();
  word("--batches", options_.batches, "lamina: concurrent batches, or auto", "N");
  app_.add_option("--replicas", options_.replicas, "lamina: copies of the weights (batches - 1)")
      ->type_name("N")
      ->check(CLI::Range(1u, 256u));
  nics("--compute-nics", options_.compute_nics, "lamina: NICs of all compute devices (one each)");
  nics("--memory-nics", options_.memory_nics, "lamina: NICs of all memory devices (one each)");
  choice("--pipeline", options_.pipeline,
         "lamina: which replica runs a slice; off: a batch for each replica; auto: off or "
         "rotational, as batching.pipeline",
         {"rotational", "fixed", "off", "auto"});
  choice("--partition", options_.partition, "lamina: what a memory device holds",
         {"heads", "requests"});
  choice("--network", options_.network, "lamina: what posts the sends", {"fhbn", "host"});
  choice("--overlap", options_.overlap, "lamina: send Q before K and V", {"on", "off"});
}

/// The devices of splitwise and neo.
void flag_adder::add_other_designs() {
  word("--prompt", options_.prompt, "splitwise: prefill machines, or none", "COUNTxMACHINE");
  word("--token", options_.token,
       "splitwise: decode machines (DGX-A100, DGX-H100, DGX-H100-capped)", "COUNTxMACHINE");
  choice("--decode-key", options_.decode_key,
         "splitwise: what sets decode time: the batch size, or the batch tokens as in the released "
         "simulator",
         {"batch", "released"});
  choice("--transfer", options_.transfer, "splitwise: how KV is transferred",
         {"layers", "serialized"});
  word("--gpu", options_.gpu, "neo: GPUs", "COUNTxDEVICE");
  word("--cpu", options_.cpu, "neo: host CPU", "DEVICE");
  choice("--offload", options_.offload, "neo: work offloaded to the host",
         {"neo", "none", "simple", "symmetric", "full"});
}

/// Engine, model, trace and load.
void flag_adder::add_workload() {
  choice("--kv", options_.kv, "homogeneous: unit of the KV cache", {"paged", "token"});
  word("--profile", options_.profile,
       "Profile of lamella bench decode --profile; sets --design served", "FILE");
  word("--host-overhead", options_.host_overhead,
       "lamina, homogeneous: published, equal, or ms per iteration, us per request", "MS,US");
  word("--model", options_.model,
       "Model of the table (LLaMA3-70B; for splitwise BLOOM-176B, for neo LLaMA3-8B)", "NAME");
  word("--models", options_.models, "Another table of models", "FILE");
  word("--trace", options_.trace,
       "Trace by name or file (CSV, Azure, Mooncake; plain, gz, xz), or "
       "uniform:REQUESTS,PROMPT,OUTPUT",
       "TRACE");
  word("--load", options_.load,
       "saturated, trace, Poisson arrivals per second, or RATE,SHAPE with gamma gaps (bursts)",
       "LOAD");
  app_.add_option("--seed", options_.seed, "Seed of the arrivals")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  word("--hardware", options_.hardware, "Another table of devices", "FILE");
}

/// What fails, grows, or runs beside decoding.
void flag_adder::add_changes() {
  app_.add_option("--failure", options_.failures,
                  "memory or compute (lamina), compute (homogeneous) or a machine's number "
                  "(splitwise) fails and comes back later; may be repeated")
      ->type_name("WHAT@SECONDS[+SECONDS]");
  app_.add_option(
          "--scale", options_.scalings,
          "memory devices (lamina), replicas or servers (homogeneous) are added or removed; "
          "may be repeated")
      ->type_name("WHAT@SECONDS=+N");
  word("--prefill", options_.prefill,
       "lamina, homogeneous: prefill devices, or beside (on decode devices), or none",
       "COUNTxDEVICE");
  app_.add_option("--prefill-servers", options_.prefill_servers,
                  "lamina, homogeneous: servers that the prefill devices are divided over")
      ->type_name("N")
      ->check(CLI::Range(1u, 4096u))
      ->capture_default_str();
  choice("--launches", options_.launches,
         "served: launches that prompts share with decoding, as batching.launches (separate)",
         {"separate", "mixed"});
  app_.add_option("--tbt-target", options_.tbt_target_s,
                  "--prefill beside, --launches mixed: seconds that an iteration with prompts "
                  "should take at most, as batching.tbt_target_seconds (no bound)")
      ->type_name("SECONDS")
      ->check(CLI::Range(1e-6, 1e3));
  app_.add_option("--stand-backs", options_.stand_backs,
                  "--launches mixed: launches that a sequence may sit out for prompts, as "
                  "batching.stand_backs (0)")
      ->type_name("N")
      ->check(CLI::Range(0u, 64u));
  app_.add_option("--prefix-cache", options_.prefix_cache_s,
                  "lamina, homogeneous: seconds that KV stays in the prefix cache, keyed by the "
                  "trace's hash_ids, as kv.prefix_cache_seconds (no cache)")
      ->type_name("SECONDS")
      ->check(CLI::Range(1e-3, 1e8));
  app_.add_flag("--checkpoint", options_.checkpoint,
                "splitwise: prefill KV survives machine failures");
  choice("--batching", options_.batching,
         "splitwise: what shares a batch: all, prompts or tokens, or requests from start to end",
         {"mixed", "continuous", "request"});
  app_.add_option("--repurpose", options_.repurpose_s,
                  "splitwise: seconds of mixed work after which a machine changes its pool (never)")
      ->type_name("SECONDS")
      ->check(CLI::Range(1e-3, 1e8));
  app_.add_option("--report", options_.report_s,
                  "splitwise: seconds between load reports of a machine (always known)")
      ->type_name("SECONDS")
      ->check(CLI::Range(1e-3, 1e8));
}

/// The autoscaler, and what it saw.
void flag_adder::add_autoscaler() {
  app_.add_option("--autoscale", options_.autoscale,
                  "compute, memory (lamina) or prefill: the live autoscaler decides how many "
                  "replicas (servers), devices or servers there are; may be repeated")
      ->type_name("WHAT=MIN..MAX");
  app_.add_option("--slo", options_.slo,
                  "Target of the autoscaler, such as tbt:p99:80 or ttft:p99:2000 (ms); may be "
                  "repeated")
      ->type_name("METRIC:p99:MS");
  app_.add_option("--policy", options_.policy,
                  "Setting of the autoscaler, such as kv_high_ratio=0.7; may be repeated")
      ->type_name("NAME=VALUE");
  word("--looks", options_.looks, "Write what the autoscaler saw, as JSON lines", "FILE");
  word("--scaling-trace", options_.scaling_trace,
       "Print what the autoscaler decides over such a file, simulated or live", "FILE");
}

/// What is written, and where.
void flag_adder::add_reports() {
  app_.add_option("--constant", options_.constants, "Override a constant of the cost models")
      ->type_name("NAME=VALUE");
  choice("--reproduce", options_.reproduce, "Print a paper's results next to ours",
         {"lamina", "lamina-v1", "splitwise", "neo"});
  app_.add_flag("--json", options_.json, "Write JSON");
  word("--csv", options_.csv, "Write every iteration as CSV", "FILE");
  word("--timeline", options_.timeline, "Write a timeline for Perfetto", "FILE");
  word("--markdown", options_.markdown, "With --reproduce: also write the report here", "FILE");
  word("--svg", options_.svg, "With --reproduce: also write the plot here", "FILE");
}

} // namespace

run_function setup_simulate(CLI::App& app) {
  auto o = std::make_shared<simulate_options>();
  flag_adder{app, *o}.add_all();
  return [o, &app] {
    if (!o->profile.empty() && app.count("--design") == 0) o->design = "served";
    if (o->design == "served" && o->profile.empty() && o->reproduce.empty())
      throw command_error{exit_usage, "--design served: there is no --profile",
                          "measure one: lamella bench decode --profile FILE"};
    if (app.count("--seed") > 0 && o->reproduce.empty()) refuse_unused_seed(o->load);
    refuse_foreign_flags(app, *o);
    refuse_batches(app, *o);
    refuse_autoscaler_flags(app, *o);
    return simulate_command(*o);
  };
}

} // namespace lamella::cli
