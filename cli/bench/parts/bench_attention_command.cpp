/// The flags of `lamella bench attention`.
#include "cli/app.hpp"
#include "cli/bench/parts/bench_attention.hpp"
#include "cli/commands.hpp"

namespace lamella::cli {

namespace {

using gpu::half_type;

constexpr half_type cache_types[]{half_type::f16, half_type::f32, half_type::bf16, half_type::q8,
                                  half_type::q4};

} // namespace

run_function setup_bench_attention(CLI::App& app) {
  auto o = std::make_shared<bench_attention_options>();
  auto names = std::make_shared<std::vector<std::string>>();
  std::vector<std::string> all;
  for (const auto type : cache_types) all.emplace_back(name_of(type));
  app.add_option("--kv", *names, "Number types of the KV cache; by default f16, bf16, q8 and q4")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->check(CLI::IsMember(all, CLI::ignore_case));
  const auto list = [&](const char* flag, std::vector<uint32_t>& to, const char* what,
                        uint32_t most) {
    app.add_option(flag, to, what)->delimiter(',')->type_name("N,...")->check(CLI::Range(1u, most));
  };
  list("--batch", o->batches, "Sequences in the batch (1,8,32)", 4096);
  list("--context", o->contexts, "Tokens of each sequence in the cache (128,1024,4096)", 1'000'000);
  const auto number = [&](const char* flag, auto& to, const char* what, uint32_t most) {
    app.add_option(flag, to, what)->type_name("N")->check(CLI::Range(1u, most));
  };
  number("--queries", o->queries, "New tokens of each sequence (1); more: a piece of a prompt",
         8192);
  number("--kv-heads", o->kv_heads, "KV heads (8)", 256);
  number("--group", o->group, "Query heads of each KV head (4)", 64);
  number("--dim", o->dim, "Elements of a head (128)", 1024);
  number("--repeats", o->repeats, "Repetitions of each type (9)", 10'000);
  number("--threads", o->threads, "Threads; by default all processors", 1024);
  app.add_option("--kernels", o->kernels, "Kernel set: auto, reference, portable, ...")
      ->type_name("NAME");
  app.add_flag("--json", o->json, "Write JSON");
  return [o, names] {
    if (!names->empty()) o->caches.clear();
    for (const auto& name : *names)
      for (const auto type : cache_types)
        if (CLI::detail::to_lower(name) == name_of(type)) o->caches.push_back(type);
    return bench_attention(*o);
  };
}

} // namespace lamella::cli
