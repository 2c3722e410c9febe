#include "cli/bench/load/workload.hpp"

#include "cli/data_files.hpp"
#include "cli/http_status.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::cli {

namespace {

/// Of lengths of answers and of pauses, which are drawn apart from lengths of prompts.
constexpr uint64_t output_stream = 0x6f7574, think_stream = 0x746869;

/// The context of the model, where the server tells it (`max_model_len`, as vLLM does).
std::optional<uint64_t> context_of(net::http_client& server, const std::string& model) {
  constexpr std::chrono::seconds timeout{10};
  net::http_reply reply;
  try {
    reply = server.get("/v1/models", timeout);
  } catch (const net::http_call_error& e) {
    throw unreachable(e);
  }
  if (reply.status != http_status::ok) return std::nullopt;
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

  /// Lengths of the answers of those turns that fit the context together.
  std::vector<uint32_t> operator()(const conversation& x) {
    std::vector<uint32_t> outputs;
    uint64_t used = 0;
    for (const auto& turn : x) {
      const auto output = output_of(turn);
      if (context_) {
        used += output + tokens_of(turn.question, options_.endpoint, true);
        if (used > *context_) {
          ++(outputs.empty() ? too_long : cut);
          break;
        }
      }
      outputs.push_back(static_cast<uint32_t>(output));
    }
    return outputs;
  }

  uint64_t too_long = 0, cut = 0;
  bool estimated = false;

private:
  uint64_t output_of(const conversation_turn& x) {
    const auto drawn = options_.output_len.draw(options_.seed ^ output_stream, count_++);
    if (options_.output_len_given) return drawn;
    if (x.output_tokens) return *x.output_tokens;
    if (x.answer.empty()) return drawn;
    return std::max<uint64_t>(tokens_of(x.answer, bench_endpoint::completions, false), 1);
  }

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

std::chrono::nanoseconds think_time(const bench_serve_options& options, uint64_t index,
                                    uint32_t turn) {
  constexpr double bits = 0x1p-53; // so many, so that u < 1 and the logarithm is finite
  const auto drawn = mixed(mixed(options.seed ^ think_stream, index), turn);
  const double u = static_cast<double>(drawn >> 11) * bits;
  return std::chrono::nanoseconds{static_cast<int64_t>(-std::log1p(-u) * options.think_s * 1e9)};
}

std::vector<std::vector<bench_item>>
read_conversations(const std::string& path, uint64_t most, uint32_t turns_max,
                   const std::function<std::vector<uint32_t>(const conversation&)>& measure,
                   std::vector<std::string>& notes) {
  constexpr size_t bytes_max = size_t{256} << 20;
  std::vector<std::vector<bench_item>> kept;
  size_t bytes = 0;
  read_data_file(path, [&](std::istream& in) {
    conversation_reader reader{in, turns_max};
    while (kept.size() < most) {
      auto x = reader.next();
      if (!x) break;
      size_t more = 0;
      for (const auto& turn : *x) more += turn.question.size();
      if (bytes + more > bytes_max) {
        notes.emplace_back("--dataset: the prompts are cut at 256 MiB; those behind are not used");
        break;
      }
      const auto outputs = measure(*x);
      if (outputs.empty()) continue;
      bytes += more;
      auto& turns = kept.emplace_back();
      for (size_t i = 0; i < outputs.size(); ++i)
        turns.push_back({std::move((*x)[i].question), outputs[i]});
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
  shares_prefixes_ =
      std::ranges::any_of(trace_, [](const auto& x) { return !x.prefix_blocks.empty(); });
}

void workload::take_conversations(net::http_client& server, const bench_serve_options& options,
                                  uint64_t requests, std::optional<uint64_t> context) {
  conversation_meter meter{server, options, context};
  texts_ = read_conversations(options.dataset, requests, options.turns, std::ref(meter), notes_);
  shares_prefixes_ = options.turns > 1;
  if (meter.too_long > 0) notes_.push_back(left_out(meter.too_long, "conversations are", *context));
  if (meter.cut > 0)
    notes_.push_back(std::to_string(meter.cut)
                     + " conversations end before a turn with which they would be longer than the "
                       "model's context of "
                     + std::to_string(*context) + " tokens");
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

bench_item workload::item(uint64_t index, uint64_t run) const {
  if (!texts_.empty()) return texts_[index % texts_.size()].front();
  if (trace_.empty())
    return {prompts_.prompt(index, prompt_tokens(index)),
            output_.draw(seed_ ^ output_stream, index)};
  const auto& x = trace_[index % trace_.size()];
  const shared_blocks shared{x.prefix_blocks, mixed(run, index / trace_.size())};
  return {prompts_.prompt(index, x.prompt_tokens, shared), x.output_tokens};
}

std::vector<bench_item> workload::turns(uint64_t index, uint64_t run) const {
  if (!texts_.empty()) return texts_[index % texts_.size()];
  return {item(index, run)};
}

uint64_t workload::prompt_length(uint64_t index) const {
  if (!texts_.empty()) return texts_[index % texts_.size()].front().prompt.size();
  return prompts_.from_file() ? prompts_.prompt(index).size() : prompt_tokens(index);
}

std::optional<std::chrono::nanoseconds> workload::arrival(uint64_t index) const {
  if (trace_.empty()) return std::nullopt;
  // Behind its end a trace begins anew, a mean gap later.
  const auto n = trace_.size();
  const double last = trace_.back().arrival_s,
               round = last + (n > 1 ? last / static_cast<double>(n - 1) : 1);
  const auto rounds = index / n;
  const double at = static_cast<double>(rounds) * round + trace_[index % n].arrival_s;
  return std::chrono::nanoseconds{static_cast<int64_t>(at / trace_speed_ * 1e9)};
}

std::optional<uint64_t> workload::size() const {
  if (!trace_.empty()) return trace_.size();
  if (!texts_.empty()) return texts_.size();
  return std::nullopt;
}

} // namespace lamella::cli
