#include "cli/bench/bench_serve.hpp"

#include "cli/bench/bench_request.hpp"
#include "cli/bench/bench_run.hpp"

#include <limits>

namespace lamella::cli {

namespace {

using std::chrono::nanoseconds;

constexpr int ok = 200, bad_request = 400;

/// One request before the load. Learns whether the server takes ignore_eos, and checks counts.
bool warm_up(net::http_client& client, const bench_serve_options& options,
             const prompt_source& prompts, std::vector<std::string>& notes) {
  const auto timeout = std::chrono::milliseconds{static_cast<int64_t>(options.timeout_s * 1e3)};
  bool exact = true;
  bench_record r;
  // Beyond all that are measured, so that no cache has seen those.
  const auto prompt = prompts.prompt(std::numeric_limits<uint64_t>::max() / 2);
  for (uint32_t done = 0; done < options.warm_up;) {
    r = {};
    net::http_reply reply;
    try {
      reply = client.stream(
          path_of(options.endpoint), request_body(options, prompt, exact),
          [&](std::string_view data) {
            read_event(r, data, nanoseconds{0});
            return r.error.empty();
          },
          timeout);
    } catch (const net::http_call_error& e) {
      throw unreachable(e);
    }
    if (reply.status == bad_request && exact) {
      exact = false; // asked again without what only some servers know
      continue;
    }
    if (reply.status != ok) throw refused(reply);
    if (!r.error.empty())
      throw command_error{exit_failure, "the warm-up request failed: " + r.error};
    ++done;
  }
  if (!r.usage)
    notes.emplace_back(
        "the server sends no usage in streams: each piece of text counts as one token");
  if (!exact)
    notes.emplace_back("the server refuses ignore_eos: answers may end before --output-tokens");
  else if (r.usage && (r.completion_tokens != options.output_tokens || r.finish != "length"))
    throw command_error{exit_failure,
                        "with ignore_eos and max_tokens " + std::to_string(options.output_tokens)
                            + ", the server stopped with finish_reason '" + r.finish + "' after "
                            + std::to_string(r.completion_tokens) + " tokens",
                        "the context is too small, or the server ignores ignore_eos: lower "
                        "--output-tokens"};
  if (const auto counted = count_tokens(client, options.model, options.endpoint, prompt);
      counted && r.usage && *counted != r.prompt_tokens)
    throw command_error{exit_failure,
                        "the server's usage says " + std::to_string(r.prompt_tokens)
                            + " prompt tokens, its /tokenize " + std::to_string(*counted),
                        "the token counts of this server are not reliable"};
  return exact;
}

} // namespace

bench_result run_bench(const server_choice& server, bench_serve_options& options) {
  const auto url = server.address();
  const auto key = server.api_key();
  net::http_client client{url, key};
  if (options.model.empty()) options.model = first_model(client);
  const auto prompts = options.prompt_file.empty()
                           ? prompt_source::synthetic(client, options.model, options.endpoint,
                                                      options.input_tokens, options.seed)
                           : prompt_source::from_file(options.prompt_file);
  std::vector<std::string> notes;
  if (options.prompt_file.empty() && !prompts.counted())
    notes.emplace_back("the server has no /tokenize: prompts are only about --input-tokens long");
  const bool exact = warm_up(client, options, prompts, notes);
  interrupts signals;
  auto result = run_load(url, key, options, prompts, exact, signals);
  result.notes.insert(result.notes.begin(), notes.begin(), notes.end());
  return result;
}

} // namespace lamella::cli
