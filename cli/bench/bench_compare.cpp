#include "cli/bench/bench_compare.hpp"

#include "base/json_writer.hpp"
#include "cli/app.hpp"
#include "cli/bench/bench_load_flags.hpp"
#include "cli/bench/bench_report.hpp"
#include "cli/commands.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <set>
#include <span>

namespace lamella::cli {

namespace {

/// What a figure is made of, summed up over requests: a sum over a weight.
struct part {
  double sum = 0, weight = 0;
  double value() const { return weight > 0 ? sum / weight : latency_summary::nothing; }
  part& operator+=(const part& x) {
    sum += x.sum;
    weight += x.weight;
    return *this;
  }
};

/// Of each figure in its order.
using parts = std::array<part, 3>;
struct pair_of_parts {
  parts a, b;
};

parts parts_of(const bench_result& own, const bench_result& other) {
  parts x;
  auto& [throughput, ttft, tbt] = x;
  throughput.weight = own.duration_s;
  for (size_t i = 0; i < own.records.size(); ++i) {
    const auto& r = own.records[i];
    if (!r.error.empty()) continue;
    throughput.sum += static_cast<double>(r.usage ? r.completion_tokens : r.pieces);
    if (i >= other.records.size() || !other.records[i].error.empty()) continue;
    ttft += {static_cast<double>((r.first - r.intended).count()) / 1e6, 1};
    for (const float gap : r.gaps_ms) tbt += {gap, 1};
  }
  return x;
}

/// The figures of some rounds together.
pair_of_parts total(const std::vector<pair_of_parts>& rounds, std::span<const size_t> which) {
  pair_of_parts x;
  for (const auto i : which)
    for (size_t f = 0; f < x.a.size(); ++f) {
      x.a[f] += rounds[i].a[f];
      x.b[f] += rounds[i].b[f];
    }
  return x;
}

double ratio_of(const pair_of_parts& x, size_t figure) {
  return x.b[figure].value() / x.a[figure].value();
}

double at_share(std::vector<double>& values, double share) {
  if (values.empty()) return latency_summary::nothing;
  const auto n = static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(n), values.end());
  return values[n];
}

std::set<std::string> notes_of(const comparison& x) {
  std::set<std::string> notes;
  if (x.rounds.size() < enough_rounds)
    notes.insert("few rounds: the intervals are too narrow, and show differences between servers "
                 "that are the same; take "
                 + std::to_string(enough_rounds) + " or more");
  for (const auto& round : x.rounds) {
    for (const auto& w : summarize(round.a, x.options_a).warnings) notes.insert("A: " + w);
    for (const auto& w : summarize(round.b, x.options_b).warnings) notes.insert("B: " + w);
  }
  return notes;
}

} // namespace

std::array<compared_figure, 3> compare(const std::vector<compared_round>& rounds, uint64_t seed) {
  std::vector<pair_of_parts> seen;
  std::vector<size_t> which;
  for (const auto& round : rounds) {
    which.push_back(seen.size());
    seen.push_back({parts_of(round.a, round.b), parts_of(round.b, round.a)});
  }
  std::array<compared_figure, 3> figures{
      compared_figure{"Output token throughput", "tok/s"},
      compared_figure{"Mean TTFT", "ms"},
      compared_figure{"Mean TBT", "ms"},
  };
  const auto whole = total(seen, which);
  std::array<std::vector<double>, 3> ratios;
  std::mt19937_64 random{seed};
  for (uint32_t k = 0; k < bootstrap_resamples && seen.size() > 1; ++k) {
    for (auto& i : which) i = random() % seen.size();
    const auto x = total(seen, which);
    for (size_t f = 0; f < ratios.size(); ++f)
      if (const auto r = ratio_of(x, f); std::isfinite(r)) ratios[f].push_back(r);
  }
  constexpr double tail = 0.025;
  for (size_t f = 0; f < figures.size(); ++f) {
    auto& x = figures[f];
    x.a = whole.a[f].value();
    x.b = whole.b[f].value();
    x.ratio = ratio_of(whole, f);
    x.low = at_share(ratios[f], tail);
    x.high = at_share(ratios[f], 1 - tail);
  }
  return figures;
}

std::string comparison_block(const comparison& x) {
  std::string out = "A: " + x.url_a + "  " + x.options_a.model + "\nB: " + x.url_b + "  "
                    + x.options_b.model + "\n";
  char text[200];
  std::snprintf(text, sizeof text, "%zu rounds, in turns; seed %llu\n\n", x.rounds.size(),
                static_cast<unsigned long long>(x.options_a.seed));
  out += text;
  std::snprintf(text, sizeof text, "%-32s %10s %10s %8s  %s\n", "", "A", "B", "B/A", "95 %");
  out += text;
  for (const auto& f : x.figures) {
    std::snprintf(text, sizeof text, "%-32s %10.2f %10.2f %8.3f  %.3f to %.3f%s\n",
                  (f.name + " (" + f.unit + "):").c_str(), f.a, f.b, f.ratio, f.low, f.high,
                  f.low > 1 || f.high < 1 ? "" : " (no difference is shown)");
    out += text;
  }
  for (const auto& note : notes_of(x)) out += "note: " + note + "\n";
  return out;
}

std::string comparison_json(const comparison& x, bool records) {
  json_writer out;
  out.begin_object().member("version", 1).member("url_a", x.url_a).member("url_b", x.url_b);
  out.member("rounds", x.rounds.size()).member("seed", x.options_a.seed);
  out.member("bootstrap_resamples", bootstrap_resamples).member("confidence", 0.95);
  constexpr std::array keys{"output_throughput", "mean_ttft_ms", "mean_tbt_ms"};
  out.key("ratios").begin_object();
  for (size_t f = 0; f < x.figures.size(); ++f) {
    const auto& y = x.figures[f];
    out.key(keys[f]).begin_object().member("a", y.a).member("b", y.b).member("ratio", y.ratio);
    out.member("low", y.low).member("high", y.high).end_object();
  }
  out.end_object();
  const auto write = [&](const char* name, bench_serve_options options,
                         bench_result compared_round::*which) {
    out.key(name).begin_array();
    for (const auto& round : x.rounds) {
      const auto& result = round.*which;
      out.raw(bench_json(summarize(result, options), result, options, records));
      ++options.seed;
    }
    out.end_array();
  };
  write("a", x.options_a, &compared_round::a);
  write("b", x.options_b, &compared_round::b);
  return out.end_object().take();
}

namespace {

struct compare_options {
  bench_serve_options load;
  std::string url_a, url_b, key_file_a, key_file_b;
  uint32_t rounds = enough_rounds;
};

/// The share of a round. Throws command_error (2) where there are fewer requests than rounds.
bench_serve_options share_of(bench_serve_options load, uint32_t rounds) {
  constexpr uint64_t requests_default = 64;
  if (!load.requests && !load.duration_s)
    load.requests = std::max<uint64_t>(requests_default, rounds);
  if (load.requests && *load.requests < rounds)
    throw command_error{exit_usage,
                        "--requests: " + std::to_string(*load.requests) + " are fewer than the "
                            + std::to_string(rounds) + " rounds",
                        "give each round one at least, or fewer --rounds"};
  if (load.requests) *load.requests /= rounds;
  if (load.duration_s) *load.duration_s /= rounds;
  return load;
}

/// One turn of a server. The model that it lists is asked for once.
bench_result turn(const server_choice& server, bench_serve_options& options, uint32_t round) {
  auto mine = options;
  mine.seed += round; // other prompts than before, or a prefix cache would know them
  auto result = run_bench(server, mine);
  options.model = mine.model;
  return result;
}

bool failed(const bench_result& x) {
  return x.records.empty()
         || std::ranges::any_of(x.records, [](const bench_record& r) { return !r.error.empty(); });
}

int bench_compare(const compare_options& options) {
  if (options.url_a == options.url_b)
    print_warning("A and B are one server: the differences between the two are noise");
  const auto& save = options.load.save;
  if (!save.empty()) save_result(save, "{}"); // better to fail before the run
  const server_choice a{options.url_a, options.key_file_a}, b{options.url_b, options.key_file_b};
  comparison x;
  x.url_a = options.url_a;
  x.url_b = options.url_b;
  x.options_a = x.options_b = share_of(options.load, options.rounds);
  bool good = true;
  for (uint32_t k = 0; k < options.rounds; ++k) {
    compared_round round;
    // Who comes first changes: what grows or fades meets both.
    if (k % 2 == 0) round.a = turn(a, x.options_a, k);
    round.b = turn(b, x.options_b, k);
    if (k % 2 != 0) round.a = turn(a, x.options_a, k);
    if (round.a.interrupted || round.b.interrupted) return exit_interrupted;
    good = good && !failed(round.a) && !failed(round.b);
    x.rounds.push_back(std::move(round));
  }
  x.figures = compare(x.rounds, options.load.seed);
  if (!save.empty()) save_result(save, comparison_json(x, true));
  const auto shown = options.load.json ? comparison_json(x, false) + "\n" : comparison_block(x);
  std::fputs(shown.c_str(), stdout);
  return good ? exit_success : exit_failure;
}

} // namespace

run_function setup_bench_compare(CLI::App& app) {
  auto options = std::make_shared<compare_options>();
  app.add_option("url_a", options->url_a, "URL of server A, which is measured against")
      ->type_name("URL_A")
      ->required();
  app.add_option("url_b", options->url_b, "URL of server B")->type_name("URL_B")->required();
  app.add_option("--api-key-file-a", options->key_file_a, "Send A the first key of this file")
      ->type_name("FILE");
  app.add_option("--api-key-file-b", options->key_file_b, "Send B the first key of this file")
      ->type_name("FILE");
  constexpr uint32_t least = 2, most = 1000;
  app.add_option("--rounds", options->rounds,
                 "Turns of each server, among which --requests or --duration is shared out")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(least, most));
  add_load_flags(app, options->load);
  app.add_flag("--json", options->load.json, "Write JSON");
  app.add_option("--save", options->load.save, "Also write JSON with every request to this file")
      ->type_name("FILE");
  return [options] {
    options->load.command_line = own_command_line();
    return bench_compare(*options);
  };
}

} // namespace lamella::cli
