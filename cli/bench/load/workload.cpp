#include "cli/bench/load/workload.hpp"

#include "cli/data_files.hpp"

#include <algorithm>

namespace lamella::cli {

namespace {

constexpr int ok = 200;
/// Of lengths of answers, which are drawn apart from those of prompts.
constexpr uint64_t output_stream = 0x6f7574;

/// The context of the model, where the server tells it (`max_model_len`, as vLLM does).
std::optional<uint64_t> context_of(net::http_client& server, const std::string& model) {
  constexpr std::chrono::seconds timeout{10};
  net::http_reply reply;
  try {
    reply = server.get("/v1/models", timeout);
  } catch (const net::http_call_error& e) {
    throw unreachable(e);
  }
  if (reply.status != ok) return std::nullopt;
  const auto answer = parse_answer(reply.body);
  const auto* data = answer.find("data");
  const auto* models = data == nullptr ? nullptr : data->get_if<json_value::array>();
  if (models == nullptr) return std::nullopt;
  for (const auto& x : *models)
    if (text_or(x.find("id"), "") == model)
      if (const auto most = number_or(x.find("max_model_len"), 0); most >= 1)
        return static_cast<uint64_t>(most);
  return std::nullopt;
}

std::string left_out(uint64_t count, const std::string& what, uint64_t context) {
  return std::to_string(count) + " " + what + " longer than the model's context of "
         + std::to_string(context) + " tokens: left out";
}

/// Measures with the server's /tokenize; without one, four bytes are a token.
class conversation_meter {
public:
  conversation_meter(net::http_client& server, const bench_serve_options& options,
                     std::optional<uint64_t> context)
      : server_{server}, options_{options}, context_{context} {}

  std::optional<uint32_t> operator()(const conversation& x) {
    uint64_t output = options_.output_len.draw(options_.seed ^ output_stream, count_++);
    if (!options_.output_len_given) {
      if (x.output_tokens)
        output = *x.output_tokens;
      else if (!x.answer.empty())
        output = tokens_of(x.answer, bench_endpoint::completions, false);
    }
    output = std::max<uint64_t>(output, 1);
    if (context_ && output + tokens_of(x.prompt, options_.endpoint, true) > *context_) {
      ++too_long;
      return std::nullopt;
    }
    return static_cast<uint32_t>(output);
  }

  uint64_t too_long = 0;
  bool estimated = false;

private:
  uint64_t tokens_of(const std::string& text, bench_endpoint endpoint, bool special) {
    if (const auto n = count_tokens(server_, options_.model, endpoint, text, special)) return *n;
    estimated = true;
    constexpr uint64_t bytes_per_token = 4;
    return text.size() / bytes_per_token;
  }

  net::http_client& server_;
  const bench_serve_options& options_;
  std::optional<uint64_t> context_;
  uint64_t count_ = 0;
};

} // namespace

std::vector<bench_item>
read_conversations(const std::string& path, uint64_t most,
                   const std::function<std::optional<uint32_t>(const conversation&)>& measure,
                   std::vector<std::string>& notes) {
  constexpr size_t bytes_max = size_t{256} << 20;
  std::vector<bench_item> kept;
  size_t bytes = 0;
  read_data_file(path, [&](std::istream& in) {
    conversation_reader reader{in};
    while (kept.size() < most) {
      auto x = reader.next();
      if (!x) break;
      if (bytes + x->prompt.size() > bytes_max) {
        notes.emplace_back("--dataset: the prompts are cut at 256 MiB; those behind are not used");
        break;
      }
      const auto output = measure(*x);
      if (!output) continue;
      bytes += x->prompt.size();
      kept.push_back({std::move(x->prompt), *output});
    }
    if (reader.passed_over() > 0)
      notes.push_back(std::to_string(reader.passed_over())
                      + " conversations without a question and its answer: left out");
  });
  return kept;
}

void workload::take_trace(const bench_serve_options& options, std::optional<uint64_t> context) {
  trace_ = load_trace(options.trace);
  trace_speed_ = options.trace_speed;
  const auto all = trace_.size();
  if (context)
    std::erase_if(trace_, [&](const auto& x) {
      return uint64_t{x.prompt_tokens} + x.output_tokens > *context;
    });
  if (trace_.empty())
    throw command_error{exit_failure,
                        "--trace: each of its " + std::to_string(all)
                            + " requests is longer than the model's context of "
                            + std::to_string(*context) + " tokens",
                        "serve with a longer context, or take another trace"};
  if (trace_.size() < all)
    notes_.push_back(left_out(all - trace_.size(), "requests of the trace are", *context));
  if (std::ranges::any_of(trace_, [](const auto& x) { return !x.prefix_blocks.empty(); }))
    notes_.emplace_back("the trace tells which prompts share a beginning; here none do");
  for (auto& x : trace_) x.prefix_blocks = {};
}

void workload::take_conversations(net::http_client& server, const bench_serve_options& options,
                                  uint64_t requests, std::optional<uint64_t> context) {
  conversation_meter meter{server, options, context};
  texts_ = read_conversations(options.dataset, requests, std::ref(meter), notes_);
  if (meter.too_long > 0) notes_.push_back(left_out(meter.too_long, "conversations are", *context));
  if (meter.estimated)
    notes_.emplace_back("the server has no /tokenize: four bytes of an answer count as a token");
  if (texts_.empty())
    throw command_error{exit_damaged_input,
                        "--dataset: " + options.dataset + " has no conversation that can be used",
                        "it needs a question of a user with an answer, within the model's context"};
  if (texts_.size() < requests && options.requests)
    notes_.push_back("--dataset: " + std::to_string(texts_.size())
                     + " conversations are used in turn, more than once");
}

/// Drawn and traced prompts have at least the tokens that the server adds to one word.
void workload::check_words(const bench_serve_options& options) {
  if (!prompts_.counted())
    notes_.emplace_back("the server has no /tokenize: prompts are only about as long as asked");
  if (trace_.empty() && options.input_len.is_fixed()
      && options.input_len.typical() < prompts_.least())
    throw command_error{exit_usage,
                        "--input-tokens " + options.input_len.text()
                            + " is too small: one word with the added tokens of the template has "
                            + std::to_string(prompts_.least()) + " tokens",
                        "use at least " + std::to_string(prompts_.least())};
  const auto shorter = std::ranges::count_if(
      trace_, [&](const auto& x) { return x.prompt_tokens < prompts_.least(); });
  if (shorter > 0)
    notes_.push_back(std::to_string(shorter) + " prompts of the trace are shorter than "
                     + std::to_string(prompts_.least()) + " tokens, the least there can be");
}

workload workload::make(net::http_client& server, const bench_serve_options& options,
                        uint64_t requests) {
  workload x;
  x.seed_ = options.seed;
  x.input_ = options.input_len;
  x.output_ = options.output_len;
  if (!options.prompt_file.empty()) {
    x.prompts_ = prompt_source::from_file(options.prompt_file);
    return x;
  }
  const bool from_files = !options.trace.empty() || !options.dataset.empty();
  const auto context = from_files ? context_of(server, options.model) : std::nullopt;
  if (!options.dataset.empty()) {
    x.take_conversations(server, options, requests, context);
    return x;
  }
  if (!options.trace.empty()) x.take_trace(options, context);
  x.prompts_ = prompt_source::synthetic(server, options.model, options.endpoint, x.prompt_tokens(0),
                                        options.seed);
  x.check_words(options);
  return x;
}

uint32_t workload::prompt_tokens(uint64_t index) const {
  return trace_.empty() ? input_.draw(seed_, index) : trace_[index % trace_.size()].prompt_tokens;
}

bench_item workload::item(uint64_t index) const {
  if (!texts_.empty()) return texts_[index % texts_.size()];
  const auto output = trace_.empty() ? output_.draw(seed_ ^ output_stream, index)
                                     : trace_[index % trace_.size()].output_tokens;
  return {prompts_.prompt(index, prompt_tokens(index)), output};
}

uint64_t workload::prompt_length(uint64_t index) const {
  if (!texts_.empty()) return texts_[index % texts_.size()].prompt.size();
  return prompts_.from_file() ? prompts_.prompt(index).size() : prompt_tokens(index);
}

std::optional<std::chrono::nanoseconds> workload::arrival(uint64_t index) const {
  if (trace_.empty()) return std::nullopt;
  // Behind its end a trace begins anew, a mean gap later.
  const auto n = trace_.size();
  const double last = trace_.back().arrival_s,
               round = last + (n > 1 ? last / static_cast<double>(n - 1) : 1);
  const double at = static_cast<double>(index / n) * round + trace_[index % n].arrival_s;
  return std::chrono::nanoseconds{static_cast<int64_t>(at / trace_speed_ * 1e9)};
}

std::optional<uint64_t> workload::size() const {
  if (!trace_.empty()) return trace_.size();
  if (!texts_.empty()) return texts_.size();
  return std::nullopt;
}

} // namespace lamella::cli
