// How long token masks take: answers are walked token by token under their schemas.
//   mask_bench VOCABULARY [ROUNDS] < CASES
// VOCABULARY: the bytes of a token in hexadecimal, one per line. CASES: one JSON object per line:
//   {"schema": S or "grammar": G, "texts": [TEXT ...]}, texts that it takes (others are left where
// they leave it). Prints quantiles of what follows a token until the next mask is known, and of the
// first masks, which come behind compiling; and where the longest were made. Times are of the
// processor: others may run beside it. What reading the clock takes itself is left out. Everything
// is done ROUNDS times (1) from the beginning, and the shortest time counts of each mask.
#include "base/json.hpp"
#include "model/grammar/hash_index.hpp"
#include "model/grammar/json_schema/json_schema.hpp"
#include "model/grammar/output_constraint.hpp"
#include "model/grammar/text/grammar_text.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

using namespace lamella;

namespace {

/// Tokens of bytes, behind one that ends answers.
class listed_tokens final : public model::tokenizer {
public:
  explicit listed_tokens(const std::string& path) {
    std::ifstream file{path};
    for (std::string line; std::getline(file, line);) {
      std::string bytes;
      for (size_t i = 0; i + 1 < line.size(); i += 2)
        bytes += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
      tokens_.push_back(bytes);
      longest_ = std::max(longest_, bytes.size());
    }
    for (size_t i = 1; i < tokens_.size(); ++i) ids_.emplace(tokens_[i], i);
  }

  /// The longest token that the text begins with, of those that are allowed; 0: none is.
  model::token_id next(std::string_view text, const model::token_mask& allowed) const {
    for (auto n = std::min(longest_, text.size()); n > 0; --n)
      if (const auto known = ids_.find(text.substr(0, n));
          known != ids_.end() && allowed.allows(static_cast<model::token_id>(known->second)))
        return static_cast<model::token_id>(known->second);
    return 0;
  }

  std::vector<model::token_id> encode(std::span<const model::text_segment>) const override {
    return {};
  }
  std::string_view token_bytes(model::token_id t) const override { return tokens_[t]; }
  bool puts_space_after(std::optional<model::token_id>) const override { return false; }
  bool is_special(model::token_id t) const override { return t == 0; }
  bool is_end(model::token_id t) const override { return t == 0; }
  std::optional<model::token_id> special_token(std::string_view) const override { return {}; }
  bool has_byte(unsigned char) const override { return true; }
  uint64_t kept_bytes(std::string_view text) const override { return text.size(); }
  uint64_t longest_token() const override { return longest_; }
  uint32_t vocabulary() const override { return static_cast<uint32_t>(tokens_.size()); }
  std::optional<model::token_id> bos() const override { return {}; }
  std::optional<model::token_id> eos() const override { return 0; }
  bool adds_bos() const override { return false; }

private:
  std::vector<std::string> tokens_{""};
  std::unordered_map<std::string_view, size_t> ids_;
  size_t longest_ = 1;
};

double microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

/// What two readings of the clock are apart when nothing is between them.
double clock_microseconds() {
  std::vector<double> times;
  for (int i = 0; i < 1001; ++i) {
    const auto begun = microseconds();
    times.push_back(microseconds() - begun);
  }
  std::nth_element(times.begin(), times.begin() + 500, times.end());
  return times[500];
}

void print(const char* what, std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double q) {
    if (times.empty()) return 0.0;
    return times[std::min(times.size() - 1,
                          static_cast<size_t>(q * static_cast<double>(times.size())))];
  };
  std::printf("%s: %zu, us: p50 %.2f, p90 %.2f, p99 %.1f, p99.9 %.1f, max %.0f\n", what,
              times.size(), at(0.5), at(0.9), at(0.99), at(0.999), at(1));
}

struct bench {
  explicit bench(const std::string& vocabulary)
      : text{std::make_shared<listed_tokens>(vocabulary)} {}

  std::shared_ptr<const listed_tokens> text;
  std::shared_ptr<const model::token_trie> trie;
  const double clock_us = clock_microseconds();
  struct times {
    std::vector<double> all;
    size_t next = 0;
    /// The same one as in earlier rounds, which is the shortest now.
    double add(double us) {
      if (next == all.size()) all.push_back(us);
      return all[next++] = std::min(all[next], us);
    }
  };
  times first, others, compiling;
  struct place {
    double us;
    size_t schema, bytes; ///< by number, of those that are taken; of the text so far
    std::string end{};    ///< of the text so far
    bool operator<(const place& x) const { return us > x.us; }
  };
  std::vector<place> longest; ///< of `others`, the longest first
  size_t left = 0;            ///< texts that left their schema
  uint64_t digest = 0;        ///< of all masks, in their order

  void remember(place here, const std::string& answer) {
    constexpr size_t kept = 12, shown = 40;
    if (longest.size() == kept && here.us <= longest.back().us) return;
    const auto from = here.bytes - std::min(here.bytes, shown);
    here.end = answer.substr(from, here.bytes - from);
    longest.insert(std::upper_bound(longest.begin(), longest.end(), here), here);
    if (longest.size() > kept) longest.pop_back();
  }

  /// Nothing is known of earlier rounds.
  void begin_round() {
    trie = std::make_shared<model::token_trie>(text);
    first.next = others.next = compiling.next = 0;
    longest.clear();
    left = digest = 0;
  }

  void walk(const json_value& question, const json_value::array& texts) {
    model::grammar g;
    auto begun = microseconds();
    if (const auto* rules = question.find("grammar"))
      g.begin(0, model::grammar_of_text(g, *rules->get_if<std::string>(), g.end()));
    else
      g.begin(0, model::json_schema_grammar(g, *question.find("schema"), g.end()));
    const auto held = std::make_shared<model::output_constraint>(
        std::move(g), trie, std::vector<model::token_id>{0}, text->vocabulary());
    compiling.add(microseconds() - begun);
    bool is_first = true;
    for (const auto& x : texts) {
      std::string_view rest{*x.get_if<std::string>()};
      model::constrained_answer answer{held};
      while (true) {
        begun = microseconds();
        answer.make_mask();
        const auto took = std::max(0.0, microseconds() - begun - clock_us);
        const auto shortest = (is_first ? first : others).add(took);
        if (!std::exchange(is_first, false))
          remember({shortest, compiling.next, x.get_if<std::string>()->size() - rest.size(), {}},
                   *x.get_if<std::string>());
        for (const auto w : answer.mask()->words) digest = model::mix(digest, w);
        if (rest.empty()) break;
        const auto token = text->next(rest, *answer.mask());
        if (token == 0) {
          ++left;
          break;
        }
        rest.remove_prefix(text->token_bytes(token).size());
        answer.generated({&token, 1});
      }
    }
  }
};

} // namespace

int main(int count, char** arguments) {
  bench all{arguments[1]};
  size_t refused = 0;
  std::vector<json_value> questions;
  for (std::string line; std::getline(std::cin, line);)
    questions.push_back(parse_json(line, {.depth = 128}));
  for (int round = count > 2 ? std::stoi(arguments[2]) : 1; round > 0; --round) {
    all.begin_round();
    refused = 0;
    for (const auto& x : questions) try {
        all.walk(x, *x.find("texts")->get_if<json_value::array>());
      } catch (const std::exception&) {
        ++refused;
      }
  }
  std::printf("vocabulary: %u tokens; schemas refused: %zu; texts that left theirs: %zu\n",
              all.text->vocabulary(), refused, all.left);
  std::printf("reading the clock, us: %.2f, left out\n", all.clock_us);
  std::printf("digest of all masks: %016llx\n", static_cast<unsigned long long>(all.digest));
  print("compiling", all.compiling.all);
  print("first masks", all.first.all);
  print("further masks", all.others.all);
  for (const auto& x : all.longest)
    std::printf("  %.0f us: schema %zu that is not refused, behind %zu bytes: ...%s\n", x.us,
                x.schema, x.bytes, x.end.c_str());
}
