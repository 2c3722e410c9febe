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

/// One request.
struct bench_item {
  std::string prompt;
  uint32_t output_tokens = 0;
};

/// Requests by number: request i is the same in every run with the same options.
class workload {
public:
  /// Reads the files of `options` and asks the server for its context and its counts. At most
  /// `requests` of a file are kept. Throws command_error.
  static workload make(net::http_client& server, const bench_serve_options& options,
                       uint64_t requests);

  /// Files and traces begin anew behind their last request.
  bench_item item(uint64_t index) const;

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
  std::vector<bench_item> texts_;
  std::vector<std::string> notes_;
};

/// The conversations of a file, as many as are kept: those whose answer has a length that `measure`
/// tells (nothing: too long for the model). Their texts are 256 MiB at most. Throws command_error
/// (66, 65).
std::vector<bench_item>
read_conversations(const std::string& path, uint64_t most,
                   const std::function<std::optional<uint32_t>(const conversation&)>& measure,
                   std::vector<std::string>& notes);

} // namespace lamella::cli
