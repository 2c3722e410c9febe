#include "cli/bench/bench_decode.hpp"

#include "actors/node/pipeline_parts.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/worker/data_plane_port.hpp"
#include "base/json_writer.hpp"
#include "cli/bench/actor_time.hpp"
#include "cli/bench/bench_pipeline.hpp"
#include "cli/commands.hpp"
#include "cli/log.hpp"
#include "cli/machine_limits.hpp"
#include "cli/plan/bench_profile.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <thread>

namespace lamella::cli {

namespace {

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

/// Without what took over four times the median: something else had the processors then.
double mean(const std::vector<double>& x) {
  const auto most = 4 * median(x);
  double sum = 0, count = 0;
  for (const auto v : x)
    if (v <= most) sum += v, count += 1;
  return sum / count;
}

struct row {
  std::string what; ///< decode or prefill
  uint32_t batch, context;
  double best, median; ///< tokens per second
  double mean_s;       ///< of an iteration or a prompt
  double actor_s = 0;  ///< of decoding: processor time of the actors per iteration

  /// Of what the processors had in an iteration.
  double actor_share() const {
    return actor_s / (mean_s * std::max(1u, std::thread::hardware_concurrency()));
  }
};

/// Tokens of two iterations may arrive together, so single gaps say little: means over four.
std::vector<double> smoothed(const std::vector<double>& gaps) {
  constexpr size_t window = 4;
  if (gaps.size() < window) return gaps;
  std::vector<double> means;
  for (size_t i = 0; i + window <= gaps.size(); ++i)
    means.push_back((gaps[i] + gaps[i + 1] + gaps[i + 2] + gaps[i + 3]) / window);
  return means;
}

row decode_row(pipeline_driver& d, uint32_t batch, uint32_t context, uint32_t iterations) {
  const auto actors_before = actor_threads_time();
  const auto single = d.measure(iterations);
  const std::chrono::duration<double> actors = actor_threads_time() - actors_before;
  auto gaps = smoothed(single);
  const double best = *std::min_element(gaps.begin(), gaps.end());
  return {"decode",
          batch,
          context,
          batch / best,
          batch / median(gaps),
          mean(single),
          actors.count() / static_cast<double>(single.size() + d.warm_up)};
}

std::vector<double> prefill_times(pipeline_driver& d, uint32_t tokens, uint32_t repeats) {
  d.prefill(std::min(tokens, 32u), false); // what has slept wakes up
  std::vector<double> times;
  for (uint32_t i = 0; i < repeats; ++i) times.push_back(d.prefill(tokens, false));
  return times;
}

struct machine_limits {
  double read_gb_per_s;
  double int8_gops; ///< 0: not known
};

std::string as_json(const actors::node& n, const std::vector<row>& rows,
                    const machine_limits& limits) {
  json_writer out;
  out.begin_object().member("version", 1).member("model", n.parts().base.model_name);
  out.member("threads", n.parts().engine->threads());
  out.member("kernels", n.parts().engine->ops().name);
  out.key("limits").begin_object().member("read_gb_per_s", limits.read_gb_per_s);
  if (limits.int8_gops > 0) out.member("int8_gops", limits.int8_gops);
  out.end_object();
  out.key("rows").begin_array();
  for (const auto& r : rows) {
    out.begin_object()
        .member("test", r.what)
        .member("batch", r.batch)
        .member("context", r.context)
        .member("tokens_per_s_best", r.best)
        .member("tokens_per_s_median", r.median);
    if (r.actor_s > 0)
      out.member("actor_us_per_iteration", r.actor_s * 1e6).member("actor_share", r.actor_share());
    out.end_object();
  }
  out.end_array().end_object();
  return out.take();
}

} // namespace

namespace {

/// Everything that is measured, in order; told as it comes.
class decode_bench {
public:
  decode_bench(actors::node& n, const bench_options& options,
               std::optional<scheduler::served_profile> profile)
      : driver_{n}, options_{options}, profile_{std::move(profile)} {}

  void run() {
    std::vector<std::vector<double>> prompts;
    for (auto tokens : options_.prefills) {
      prompts.push_back(prefill_times(driver_, tokens, options_.repeats));
      const double best = *std::min_element(prompts.back().begin(), prompts.back().end());
      const double middle = median(prompts.back());
      add({"prefill", 1, tokens, tokens / best, tokens / middle, mean(prompts.back())});
      if (profile_) profile_->prefill.push_back({double(tokens), rows_.back().mean_s});
    }
    auto batches = options_.batches;
    std::sort(batches.rbegin(), batches.rend());
    for (auto context : options_.contexts)
      for (auto batch : batches) decode(batch, context);
    driver_.leave(0);
    if (!profile_) return;
    // Minutes have passed, and a shared machine has had other neighbours: the mean of both times.
    for (size_t i = 0; i < prompts.size(); ++i) {
      const auto again = prefill_times(driver_, options_.prefills[i], options_.repeats);
      prompts[i].insert(prompts[i].end(), again.begin(), again.end());
      profile_->prefill[i].seconds = mean(prompts[i]);
    }
    profile_->sharing = {{1, 1, 1}}; // unless something runs beside
    if (sharing_.empty()) return;
    // Contexts grew while the prompt ran: compared is with iterations alone that were as long.
    const scheduler::served_cost alone{*profile_};
    for (auto& x : sharing_) {
      x.alone_s = alone.iteration_s(x.rows, x.rows * x.context);
      x.prompt_alone_s = prompt_of(x.prompt).seconds;
    }
    profile_->sharing = rates_of(sharing_);
  }

  const std::vector<row>& rows() const { return rows_; }
  const scheduler::served_profile& profile() const { return *profile_; }

private:
  const row& add(row r) {
    rows_.push_back(std::move(r));
    const auto& x = rows_.back();
    if (!options_.json) {
      std::printf("%-8s %6u %8u %14.1f %14.1f", x.what.c_str(), x.batch, x.context, x.best,
                  x.median);
      if (x.actor_s > 0) std::printf(" %9.0f us %4.1f %%", x.actor_s * 1e6, x.actor_share() * 100);
      std::printf("\n");
      std::fflush(stdout);
    }
    return x;
  }

  /// With sequences of its own, so that a batch never begins with what larger ones generated.
  void decode(uint32_t batch, uint32_t context) {
    driver_.leave(0);
    for (uint32_t i = 0; i < batch; ++i) driver_.prefill(context, true);
    driver_.join();
    const auto alone_s = add(decode_row(driver_, batch, context, options_.iterations)).mean_s;
    if (!profile_) return;
    const auto middle = context + driver_.warm_up + options_.iterations / 2.0;
    profile_->decode.push_back({double(batch), middle, alone_s});
    // The prompt needs a seat, too: no prompt ever runs beside a full batch.
    if (batch >= profile_->limits.seats) return;
    // A chunk, whose tokens attend to few, and several, whose tokens attend to many.
    for (const auto chunks : {1.0, 4.0}) {
      const auto& prompt = prompt_of(chunks * profile_->limits.chunk_tokens);
      const auto since = context + driver_.generated();
      const auto beside = driver_.measure_beside(static_cast<uint32_t>(prompt.tokens),
                                                 static_cast<uint32_t>(4 / chunks));
      sharing_.push_back({batch, since + beside.iterations / 2, prompt.tokens, alone_s,
                          prompt.seconds, beside.seconds, beside.iterations});
    }
  }

  /// The shortest measured prompt of so many tokens, or the longest there is.
  const scheduler::prefill_point& prompt_of(double tokens) const {
    const auto& all = profile_->prefill;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](auto& x) { return x.tokens >= tokens; });
    return found == all.end() ? all.back() : *found;
  }

  pipeline_driver driver_;
  const bench_options& options_;
  std::optional<scheduler::served_profile> profile_;
  std::vector<sharing_sample> sharing_;
  std::vector<row> rows_;
};

} // namespace

void fill_batches(bench_options& o, uint32_t seats) {
  if (!o.batches.empty()) return;
  if (o.profile.empty()) {
    o.batches = {1, 8, 32, 64};
    return;
  }
  const auto most = std::min(seats, 64u);
  for (uint32_t x = 1; x < most; x *= 2) o.batches.push_back(x);
  o.batches.push_back(most);
}

void fill_sizes(bench_options& o, uint32_t chunk_tokens, uint32_t context_tokens) {
  if (o.iterations == 0) o.iterations = o.profile.empty() ? 24 : 48;
  if (o.contexts.empty() && o.profile.empty()) o.contexts = {128, 1024};
  if (o.contexts.empty()) // of what begins, what is usual, and what is long
    for (const auto x : {32u, 256u, 1024u}) {
      const auto context = std::clamp(x, 1u, std::max(1u, context_tokens / 2));
      if (o.contexts.empty() || o.contexts.back() < context) o.contexts.push_back(context);
    }
  std::sort(o.contexts.begin(), o.contexts.end());
  std::sort(o.prefills.begin(), o.prefills.end());
  if (!o.prefills.empty()) return;
  if (o.profile.empty()) {
    o.prefills = {512, 2048};
    return;
  }
  for (const auto x :
       {chunk_tokens / 16, chunk_tokens / 4, chunk_tokens, 4 * chunk_tokens, 8 * chunk_tokens}) {
    const auto tokens = std::clamp(x, 1u, context_tokens / 2);
    if (o.prefills.empty() || o.prefills.back() < tokens) o.prefills.push_back(tokens);
  }
}

int bench_decode(config::settings settings, bench_options options) {
  configure_log(settings.log, true);
  auto& seats = settings.batching.max_batch;
  fill_batches(options, seats);
  const auto largest = *std::max_element(options.batches.begin(), options.batches.end());
  if (!options.profile.empty() && largest > seats)
    throw command_error{exit_usage,
                        "--batch: a profile measures the service as configured, and "
                        "batching.max_batch is "
                            + std::to_string(seats),
                        "add --set batching.max_batch=" + std::to_string(largest)};
  if (!options.profile.empty() && !std::ofstream{options.profile, std::ios::app})
    throw command_error{exit_failure, "--profile: cannot write " + options.profile};
  if (!options.profile.empty() && seats > 1
      && *std::min_element(options.batches.begin(), options.batches.end()) >= seats)
    throw command_error{exit_usage, "--batch: a profile needs a batch below batching.max_batch",
                        "add 1 to the list"};
  seats = std::max(seats, largest);
  actors::node n{settings, false};
  n.connect_with(actors::data_plane_links(settings.net.listen));
  n.start([](const std::string&, uint64_t, uint64_t) {});
  fill_sizes(options, settings.batching.prefill_chunk_tokens, n.server()->context_tokens);
  const auto threads = n.parts().engine->threads();
  std::optional<scheduler::served_profile> profile;
  if (!options.profile.empty()) profile = profile_facts(n, settings);
  const double before = measure_read_bandwidth(threads);
  if (!options.json)
    std::printf("%s\n%-8s %6s %8s %14s %14s %19s\n", n.summary().c_str(), "test", "batch",
                "context", "tok/s best", "tok/s median", "actors, iteration");
  std::vector<row> rows;
  {
    decode_bench bench{n, options, std::move(profile)};
    bench.run();
    rows = bench.rows();
    if (!options.profile.empty()) save_profile(options.profile, bench.profile());
  }
  const machine_limits limits{std::max(before, measure_read_bandwidth(threads)),
                              measure_int8_rate(threads)};
  if (options.json)
    std::printf("%s\n", as_json(n, rows, limits).c_str());
  else
    std::printf("this machine, %u threads, same run: reading %.1f GB/s, int8 %.0f Gop/s\n", threads,
                limits.read_gb_per_s, limits.int8_gops);
  return exit_success;
}

} // namespace lamella::cli
