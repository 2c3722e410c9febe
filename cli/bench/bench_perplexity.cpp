#include "cli/bench/bench_perplexity.hpp"

#include "actors/node/node.hpp"
#include "actors/request/service.hpp"
#include "actors/worker/data_plane_port.hpp"
#include "base/json_writer.hpp"
#include "cli/bench/bench_pipeline.hpp"
#include "cli/commands.hpp"
#include "cli/log.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace lamella::cli {

namespace {

/// A text is read whole.
constexpr size_t text_bytes_most = size_t{64} << 20;

const char* word_of(config::number_type type) {
  switch (type) {
  case config::number_type::f16:
    return "f16";
  case config::number_type::f32:
    return "f32";
  case config::number_type::bf16:
    return "bf16";
  case config::number_type::q8:
    return "q8";
  case config::number_type::q4:
    break;
  }
  return "q4";
}

/// Types of 16 bits, which no kernel converts into each other.
bool is_half(config::number_type type) {
  return type == config::number_type::f16 || type == config::number_type::bf16;
}

std::string read_text(const std::string& path) {
  std::error_code none;
  const auto size = std::filesystem::file_size(path, none);
  std::ifstream file{path, std::ios::binary};
  if (none || !file) throw command_error{exit_missing_input, path + ": cannot be read"};
  if (size > text_bytes_most)
    throw command_error{exit_usage,
                        path + ": " + std::to_string(size) + " bytes, at most "
                            + std::to_string(text_bytes_most) + " are read",
                        "give a part of it"};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::vector<actors::token_id> tokens_of(const model::tokenizer& text, const std::string& words) {
  auto tokens = text.encode(words, model::special::forbidden);
  if (const auto bos = text.bos(); bos && text.adds_bos()) tokens.insert(tokens.begin(), *bos);
  return tokens;
}

void check_size(size_t tokens, const std::string& file) {
  if (tokens < 2)
    throw command_error{exit_usage,
                        file + ": " + std::to_string(tokens) + " token(s), at least 2 are needed",
                        "give a longer text"};
}

struct outcome {
  std::vector<actors::token_id> text;
  predictions predicted;
};

outcome run(const config::settings& settings, const perplexity_options& o,
            const std::string& words) {
  actors::node n{settings, false};
  n.connect_with(actors::data_plane_links(settings.net.listen));
  n.start([](const std::string&, uint64_t, uint64_t) {});
  const auto server = n.server();
  outcome result{tokens_of(*server->text, words), {}};
  check_size(result.text.size(), o.text);
  result.predicted.model = settings.model.path.filename().string();
  if (result.predicted.model.empty()) result.predicted.model = server->model_name;
  result.predicted.kv = word_of(settings.kv.dtype);
  const auto window =
      static_cast<uint32_t>(std::min<uint64_t>(o.window, actors::longest_prompt(*server)));
  pipeline_driver driver{n};
  for (const auto& x : windows_of(result.text.size(), window)) {
    const auto from = result.text.begin() + static_cast<ptrdiff_t>(x.first);
    auto scores = driver.score({from, from + static_cast<ptrdiff_t>(x.tokens)});
    result.predicted.tokens.insert(
        result.predicted.tokens.end(),
        std::move_iterator{scores.end() - static_cast<ptrdiff_t>(x.scored)},
        std::move_iterator{scores.end()});
  }
  return result;
}

void check_alike(const outcome& first, const outcome& other) {
  if (first.text == other.text) return;
  throw command_error{exit_configuration,
                      "--against: " + other.predicted.model + " has another tokeniser than "
                          + first.predicted.model,
                      "compare files of one model"};
}

void print(const std::vector<outcome>& all, const perplexity_options& o) {
  std::printf("%s: %zu tokens in windows of %u\n%-40s %-5s %11s %9s %9s %9s %10s\n", o.text.c_str(),
              all.front().text.size(), o.window, "model", "kv", "perplexity", "to first",
              "mean |d|", "largest", "same best");
  const auto& first = all.front().predicted.tokens;
  for (const auto& [text, x] : all) {
    const auto d = difference_of(first, x.tokens);
    std::printf("%-40s %-5s %11.4f %9.4f %9.4f %9.4f %8.2f %%\n", x.model.c_str(), x.kv.c_str(),
                perplexity_of(x.tokens), perplexity_of(x.tokens) / perplexity_of(first), d.mean,
                d.largest, 100 * d.same_best);
  }
  std::printf("d: differences of the tokens' log probabilities, in nats, from the first row\n");
}

std::string as_json(const std::vector<outcome>& all, const perplexity_options& o) {
  json_writer out;
  out.begin_object().member("version", 1).member("text", o.text);
  out.member("tokens", uint64_t{all.front().text.size()}).member("window", o.window);
  out.key("rows").begin_array();
  for (const auto& [text, x] : all) {
    const auto d = difference_of(all.front().predicted.tokens, x.tokens);
    out.begin_object().member("model", x.model).member("kv", x.kv);
    out.member("perplexity", perplexity_of(x.tokens)).member("mean_difference", d.mean);
    out.member("largest_difference", d.largest).member("same_best", d.same_best).end_object();
  }
  out.end_array().end_object();
  return out.take();
}

} // namespace

std::vector<text_window> windows_of(size_t tokens, uint32_t window) {
  std::vector<text_window> result;
  const size_t size = std::max(window, 2u), step = (size + 1) / 2;
  for (size_t first = 0, counted = 1; counted < tokens; first += step) {
    const auto end = std::min(first + size, tokens);
    result.push_back({first, end - first, end - counted});
    counted = end;
  }
  return result;
}

double perplexity_of(std::span<const actors::sampled_token> tokens) {
  double sum = 0;
  for (const auto& x : tokens) sum -= x.logprob;
  return std::exp(sum / static_cast<double>(std::max<size_t>(tokens.size(), 1)));
}

prediction_difference difference_of(std::span<const actors::sampled_token> a,
                                    std::span<const actors::sampled_token> b) {
  prediction_difference result;
  const auto count = std::min(a.size(), b.size());
  if (count == 0) return result;
  size_t same = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto apart = std::abs(double{a[i].logprob} - b[i].logprob);
    result.mean += apart / static_cast<double>(count);
    result.largest = std::max(result.largest, apart);
    same += !a[i].top.empty() && !b[i].top.empty() && a[i].top[0].token == b[i].top[0].token;
  }
  result.same_best = static_cast<double>(same) / static_cast<double>(count);
  return result;
}

int bench_perplexity(const config::settings& settings, const perplexity_options& o) {
  configure_log(settings.log, true);
  const auto words = read_text(o.text);
  std::vector<std::filesystem::path> models{settings.model.path};
  models.insert(models.end(), o.against.begin(), o.against.end());
  auto types = o.kv;
  if (types.empty()) types.push_back(settings.kv.dtype);
  std::vector<outcome> all;
  for (const auto& model : models)
    for (const auto type : types) {
      auto x = settings;
      x.model.path = model;
      x.kv.dtype = type;
      if (is_half(type) && is_half(x.numerics.wire)) x.numerics.wire = type;
      all.push_back(run(x, o, words));
      check_alike(all.front(), all.back());
    }
  if (o.json)
    std::printf("%s\n", as_json(all, o).c_str());
  else
    print(all, o);
  return exit_success;
}

} // namespace lamella::cli
