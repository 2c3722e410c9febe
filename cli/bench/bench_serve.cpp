#include "cli/bench/bench_serve.hpp"

#include "cli/bench/bench_request.hpp"
#include "cli/bench/bench_run.hpp"
#include "cli/http_status.hpp"

#include <algorithm>
#include <limits>

namespace lamella::cli {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

/// Prompts that are measured alone are chosen among so many.
constexpr uint64_t alone_candidates = 64;
/// Before the load and for itself: no cache shall have seen the beginnings of prompts.
constexpr uint64_t warm_up_run = ~uint64_t{0}, alone_run = warm_up_run - 1;

/// A request that has this program for itself; the status may be one of a refusal.
net::http_reply ask_alone(net::http_client& client, const bench_serve_options& options,
                          const bench_item& item, bool exact, bench_record& r) {
  const auto timeout = std::chrono::milliseconds{static_cast<int64_t>(options.timeout_s * 1e3)};
  const auto begin = clock::now();
  try {
    auto reply = client.stream(
        path_of(options.endpoint), request_body(options, item, exact),
        [&](std::string_view data) {
          read_event(r, data, clock::now() - begin);
          return r.error.empty();
        },
        timeout);
    r.end = clock::now() - begin;
    return reply;
  } catch (const net::http_call_error& e) {
    throw unreachable(e);
  }
}

/// Refuses counts that cannot be relied on.
void check_counts(net::http_client& client, const bench_serve_options& options,
                  const bench_item& item, bool exact, const bench_record& r) {
  if (exact && r.usage && (r.completion_tokens != item.output_tokens || r.finish != "length"))
    throw command_error{exit_failure,
                        "with ignore_eos and max_tokens " + std::to_string(item.output_tokens)
                            + ", the server stopped with finish_reason '" + r.finish + "' after "
                            + std::to_string(r.completion_tokens) + " tokens",
                        "the context is too small, or the server ignores ignore_eos: lower "
                        "--output-tokens"};
  if (const auto counted = count_tokens(client, options.model, options.endpoint, item.prompt);
      counted && r.usage && *counted != r.prompt_tokens)
    throw command_error{exit_failure,
                        "the server's usage says " + std::to_string(r.prompt_tokens)
                            + " prompt tokens, its /tokenize " + std::to_string(*counted),
                        "the token counts of this server are not reliable"};
}

/// One request before the load. Learns whether the server takes ignore_eos, and checks counts.
bool warm_up(net::http_client& client, const bench_serve_options& options, const workload& work,
             std::vector<std::string>& notes) {
  bool exact = true;
  bench_record r;
  // Beyond all that are measured, so that no cache has seen those.
  const auto item = work.item(std::numeric_limits<uint64_t>::max() / 2, warm_up_run);
  for (uint32_t done = 0; done < options.warm_up;) {
    r = {};
    const auto reply = ask_alone(client, options, item, exact, r);
    if (reply.status == http_status::bad_request && exact) {
      exact = false; // asked again without what only some servers know
      continue;
    }
    if (reply.status != http_status::ok) throw refused(reply);
    if (!r.error.empty())
      throw command_error{exit_failure, "the warm-up request failed: " + r.error};
    ++done;
  }
  if (!r.usage)
    notes.emplace_back(
        "the server sends no usage in streams: each piece of text counts as one token");
  if (!exact)
    notes.emplace_back("the server refuses ignore_eos: answers may end before --output-tokens");
  check_counts(client, options, item, exact, r);
  return exact;
}

/// Requests of five lengths, from the shortest to the longest of some, twice each: what a request
/// takes that has the server for itself. `first` is the number of the first that may be taken.
std::vector<bench_record> measure_alone(net::http_client& client,
                                        const bench_serve_options& options, const workload& work,
                                        bool exact, uint64_t first) {
  std::vector<uint64_t> indices;
  for (uint64_t i = 0; i < alone_candidates; ++i) indices.push_back(first + i);
  std::stable_sort(indices.begin(), indices.end(), [&](uint64_t a, uint64_t b) {
    return work.prompt_length(a) < work.prompt_length(b);
  });
  std::vector<bench_record> all;
  constexpr size_t lengths = 5;
  const auto last = indices.size() - 1;
  for (size_t k = 0; k < lengths; ++k) {
    const auto at = last * k / (lengths - 1);
    for (const auto i : {indices[at], indices[at == last ? at - 1 : at + 1]}) {
      bench_record r;
      const auto reply = ask_alone(client, options, work.item(i, alone_run), exact, r);
      if (reply.status != http_status::ok) throw refused(reply);
      if (!r.error.empty() || r.pieces == 0)
        throw command_error{exit_failure, "a request that is alone failed: "
                                              + (r.error.empty() ? "no text" : r.error)};
      if (!r.usage) r.prompt_tokens = work.prompt_length(i);
      all.push_back(std::move(r));
    }
  }
  return all;
}

/// A server that is ready to be measured.
struct prepared {
  net::http_url url;
  std::string key;
  workload work;
  bool exact = true;
  std::vector<std::string> notes;
  std::vector<bench_record> alone;

  bench_result run(const bench_serve_options& options, interrupts& signals) const {
    auto result = run_load(url, key, options, work, exact, signals);
    result.alone = alone;
    result.notes.insert(result.notes.begin(), notes.begin(), notes.end());
    return result;
  }
};

prepared prepare(const server_choice& server, bench_serve_options& options) {
  prepared x{server.address(), server.api_key(), {}, true, {}, {}};
  net::http_client client{x.url, x.key};
  if (options.model.empty()) options.model = first_model(client);
  constexpr uint64_t kept_for_duration = 10'000;
  const auto runs = std::max<uint64_t>(1, options.rates.size());
  const auto requests = options.requests     ? *options.requests * runs
                        : options.duration_s ? kept_for_duration
                                             : requests_default * runs;
  x.work = workload::make(client, options, requests + (options.slowdowns ? alone_candidates : 0));
  x.notes = x.work.notes();
  x.exact = warm_up(client, options, x.work, x.notes);
  if (options.slowdowns) x.alone = measure_alone(client, options, x.work, x.exact, requests);
  return x;
}

} // namespace

bench_result run_bench(const server_choice& server, bench_serve_options& options) {
  const auto ready = prepare(server, options);
  interrupts signals;
  return ready.run(options, signals);
}

void run_sweep(const server_choice& server, bench_serve_options& options,
               const std::function<void(const bench_serve_options&, bench_result)>& on_run) {
  const auto ready = prepare(server, options);
  interrupts signals;
  auto mine = options;
  for (const double rate : options.rates) {
    mine.rate = rate;
    auto result = ready.run(mine, signals);
    mine.first_index += result.begun;
    const bool interrupted = result.interrupted;
    on_run(mine, std::move(result));
    if (interrupted) return;
  }
}

} // namespace lamella::cli
