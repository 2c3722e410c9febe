/// What a serving benchmark asks: drawn lengths, a trace, or a file of prompts or conversations.
#pragma once

#include "cli/bench/bench_record.hpp"
#include "cli/bench/load/conversations.hpp"
#include "scheduler/planner/cost/trace.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lamella::cli {

/// A turn of a conversation that is over, with the answer that the server gave.
struct answered_turn {
  std::string question, answer;
};

/// One request.
struct bench_item {
  std::string prompt;
  uint32_t output_tokens = 0;
  std::vector<answered_turn> before = {}; ///< what its conversation has said; the oldest first
};

/// Requests by number: request i is the same in every run with the same options.
class workload {
public:
  /// Reads the files of `options` and asks the server for its context and its counts. At most
  /// `requests` of a file are kept. Throws command_error.
  static workload make(net::http_client& server, const bench_serve_options& options,
                       uint64_t requests);

  /// Files and traces begin anew behind their last request. Where a trace tells which prompts share
  /// a beginning, those of one `run` do; behind the end of the trace they have other texts.
  bench_item item(uint64_t index, uint64_t run = 0) const;

  /// That request with the turns that follow it, where a dataset has some; `before` is for those
  /// who ask to fill.
  std::vector<bench_item> turns(uint64_t index, uint64_t run = 0) const;

  /// Whether prompts share beginnings by intention, so that hits of a prefix cache are no mistake.
  bool shares_prefixes() const { return shares_prefixes_; }

  /// Roughly how long its prompt is, without making it.
  uint64_t prompt_length(uint64_t index) const;

  /// When it comes, of a trace that says so.
  std::optional<std::chrono::nanoseconds> arrival(uint64_t index) const;

  /// The requests that a trace or file has; nothing where they are drawn.
  std::optional<uint64_t> size() const;

  /// What a reader must know of them.
  const std::vector<std::string>& notes() const { return notes_; }

private:
  void take_trace(const bench_serve_options& options, std::optional<uint64_t> context);
  void take_conversations(net::http_client& server, const bench_serve_options& options,
                          uint64_t requests, std::optional<uint64_t> context);
  void check_words(const bench_serve_options& options);
  uint32_t prompt_tokens(uint64_t index) const;

  prompt_source prompts_;
  length_distribution input_{1}, output_{1};
  uint64_t seed_ = 0;
  scheduler::request_trace trace_;
  double trace_speed_ = 1;
  bool shares_prefixes_ = false;
  std::vector<std::vector<bench_item>> texts_; ///< turns of each conversation
  std::vector<std::string> notes_;
};

/// The pause of a user before turn `turn` of conversation `index`: exponential with the mean
/// options.think_s, by options.seed.
std::chrono::nanoseconds think_time(const bench_serve_options& options, uint64_t index,
                                    uint32_t turn);

/// The conversations of a file, at most `most` with `turns_max` turns each. `measure` tells the
/// length of the answer of each turn that is kept; of none, the conversation is left out. Their
/// texts are 256 MiB at most. Throws command_error (66, 65).
std::vector<std::vector<bench_item>>
read_conversations(const std::string& path, uint64_t most, uint32_t turns_max,
                   const std::function<std::vector<uint32_t>(const conversation&)>& measure,
                   std::vector<std::string>& notes);

} // namespace lamella::cli
