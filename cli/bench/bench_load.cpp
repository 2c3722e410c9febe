#include "cli/bench/bench_load.hpp"

#include "base/json_writer.hpp"
#include "cli/bench/load/lengths.hpp"
#include "cli/http_status.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace lamella::cli {

namespace {

constexpr std::chrono::seconds tokenize_timeout{30};
constexpr size_t file_bytes_max = size_t{256} << 20;

/// In most vocabularies each of these is one token, with the space before it.
constexpr const char* common_words =
    "time year people way day man thing woman life child world school state family student group "
    "country problem hand part place case week company system program question work government "
    "number night point home water room mother area money story fact month lot right study book "
    "eye "
    "job word business issue side kind head house service friend father power hour game line end "
    "member law car city community name president team minute idea body information back parent "
    "face others level office door health person art war history party result change morning "
    "reason "
    "research girl guy moment air teacher force education";

std::vector<std::string> words_of(const char* text) {
  std::istringstream in{text};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

} // namespace

std::chrono::nanoseconds poisson_arrivals::next() {
  // 53 random bits, so that u < 1 and the logarithm is finite.
  const double u = static_cast<double>(random_() >> 11) * 0x1p-53;
  seconds_ -= std::log1p(-u) / rate_;
  return std::chrono::nanoseconds{static_cast<int64_t>(seconds_ * 1e9)};
}

std::optional<uint64_t> count_tokens(net::http_client& server, const std::string& model,
                                     bench_endpoint endpoint, const std::string& prompt,
                                     bool special) {
  json_writer body;
  body.begin_object().member("model", model);
  if (endpoint == bench_endpoint::chat)
    body.key("messages")
        .begin_array()
        .begin_object()
        .member("role", "user")
        .member("content", prompt)
        .end_object()
        .end_array()
        .member("add_generation_prompt", true);
  else
    body.member("prompt", prompt);
  if (!special) body.member("add_special_tokens", false);
  net::http_reply reply;
  try {
    reply = server.post("/tokenize", body.end_object().take(), tokenize_timeout);
  } catch (const net::http_call_error& e) {
    throw unreachable(e);
  }
  if (reply.status != http_status::ok) return std::nullopt;
  try {
    const auto json = parse_json(reply.body);
    const auto count = number_or(json.find("count"), -1);
    if (count >= 0) return static_cast<uint64_t>(count);
  } catch (const json_syntax_error&) { // some other route of that name
  }
  return std::nullopt;
}

prompt_source prompt_source::from_file(const std::string& path) {
  std::ifstream in{path, std::ios::binary};
  if (!in)
    throw command_error{exit_missing_input, "--prompt-file: cannot read " + path,
                        "write one prompt per line into it"};
  prompt_source made;
  made.from_file_ = true;
  size_t bytes = 0;
  for (std::string line; std::getline(in, line);) {
    bytes += line.size();
    if (bytes > file_bytes_max)
      throw command_error{exit_damaged_input, "--prompt-file: " + path + " is larger than 256 MiB",
                          "split the file"};
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) made.texts_.push_back(line);
  }
  if (made.texts_.empty())
    throw command_error{exit_damaged_input, "--prompt-file: " + path + " has no lines",
                        "write one prompt per line into it"};
  return made;
}

prompt_source prompt_source::synthetic(net::http_client& server, const std::string& model,
                                       bench_endpoint endpoint, uint32_t tokens, uint64_t seed) {
  prompt_source made;
  made.seed_ = seed;
  made.texts_ = words_of(common_words);
  const auto count = [&](const std::string& text) {
    return count_tokens(server, model, endpoint, text);
  };
  made.starts_ = made.texts_;
  const auto all = count(joined(made.texts_));
  if (!all) return made; // no /tokenize: a word is about a token
  // The first word has no space before it, and begin tokens or a chat template around it.
  std::vector<uint64_t> alone;
  for (const auto& word : made.texts_) alone.push_back(*count(word));
  const auto least = *std::min_element(alone.begin(), alone.end());
  made.starts_.clear();
  for (size_t i = 0; i < alone.size(); ++i)
    if (alone[i] == least) made.starts_.push_back(made.texts_[i]);
  if (*all != alone.front() + made.texts_.size() - 1) {
    // Another vocabulary: keep the words that it has whole.
    std::vector<std::string> whole;
    for (const auto& word : made.texts_)
      if (*count(made.starts_.front() + " " + word) == least + 1) whole.push_back(word);
    made.texts_ = std::move(whole);
  }
  made.least_ = static_cast<uint32_t>(least);
  tokens = std::max(tokens, made.least_);
  const auto got = made.texts_.size() < 2 ? 0 : *count(made.prompt(0, tokens));
  if (got != tokens)
    throw command_error{
        exit_failure,
        "the synthetic prompt has " + std::to_string(got)
            + " tokens by the server's /tokenize instead of " + std::to_string(tokens),
        "this vocabulary has too few common words as single tokens; use --prompt-file"};
  made.counted_ = true;
  return made;
}

std::string prompt_source::prompt(uint64_t index, uint32_t tokens,
                                  const shared_blocks& shared) const {
  if (from_file_) return texts_[index % texts_.size()];
  std::mt19937_64 own{mixed(seed_, index)}, of_block;
  std::string out;
  const auto words = std::max(tokens, least_) - least_ + 1;
  for (uint32_t i = 0; i < words; ++i) {
    const auto block = i / shared_blocks::tokens;
    const bool is_shared = block < shared.ids.size();
    if (is_shared && i % shared_blocks::tokens == 0)
      of_block.seed(mixed(mixed(~seed_, shared.text), shared.ids[block]));
    auto& random = is_shared ? of_block : own;
    out += i == 0 ? starts_[random() % starts_.size()] : " " + texts_[random() % texts_.size()];
  }
  return out;
}

} // namespace lamella::cli
