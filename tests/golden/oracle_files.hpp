/// What model_golden.py wrote to tests/data/golden/: the oracle's logits and tokens.
#pragma once

#include "tests/folders.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace lamella::tests {

/// A prompt, the oracle's greedy continuation, and per token of it the gap between the oracle's two
/// best logits.
struct greedy_case {
  std::string name;
  std::vector<uint32_t> prompt, tokens;
  std::vector<double> gaps;
};

/// The oracle's logits at one position of the text, the best ones only.
struct forced_row {
  float logsumexp;           ///< over the whole vocabulary
  float largest;             ///< max|logit| over the whole vocabulary
  float target_logit;        ///< of the token that follows in the text
  float rest_logprob;        ///< log of the probability of all tokens that are not in `ids`
  std::vector<uint32_t> ids; ///< best first, lower id first among equals
  std::vector<float> logits; ///< of `ids`
  float gap() const { return logits[0] - logits[1]; }
};

/// model_text.txt, token by token: rows[p] predicts tokens[p + 1].
struct forced_text {
  uint64_t file_bytes = 0; ///< length of the model file that the oracle read
  uint32_t vocabulary = 0;
  std::vector<uint32_t> tokens;
  std::vector<forced_row> rows;
};

/// All logits of a few positions of the text.
struct whole_logits {
  std::vector<uint32_t> positions;
  std::vector<std::vector<float>> rows;
};

namespace detail {

inline std::string golden(const char* name) {
  return std::string{tests::source_folder} + "/tests/data/golden/" + name;
}

/// Takes little-endian values from a file that was read whole.
class byte_reader {
public:
  explicit byte_reader(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    REQUIRE_MESSAGE(in.good(), path);
    std::stringstream all;
    all << in.rdbuf();
    bytes_ = all.str();
  }

  template <class T> std::vector<T> take(size_t count) {
    REQUIRE(count * sizeof(T) <= bytes_.size() - at_);
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
    return values;
  }
  template <class T> T one() { return take<T>(1)[0]; }
  bool at_end() const { return at_ == bytes_.size(); }

private:
  std::string bytes_;
  size_t at_ = 0;
};

template <class T> std::vector<T> take_counted(std::istream& in) {
  size_t count = 0;
  in >> count;
  std::vector<T> values(count);
  for (T& value : values) in >> value;
  return values;
}

} // namespace detail

/// model_greedy.txt: a comment; "file-bytes prompts"; per prompt its name, "count ids", "count
/// tokens" and the gaps.
inline std::vector<greedy_case> read_greedy() {
  std::ifstream in(detail::golden("model_greedy.txt"));
  std::string line;
  std::getline(in, line);
  uint64_t file_bytes = 0;
  size_t count = 0;
  in >> file_bytes >> count;
  std::vector<greedy_case> cases(count);
  for (auto& x : cases) {
    in >> line >> std::ws;
    REQUIRE(line == "prompt");
    std::getline(in, x.name);
    x.prompt = detail::take_counted<uint32_t>(in);
    x.tokens = detail::take_counted<uint32_t>(in);
    x.gaps.resize(x.tokens.size());
    for (double& gap : x.gaps) in >> gap;
    REQUIRE(in.good());
  }
  return cases;
}

/// model_forced.bin: "LAMGOLD1", u64 file bytes, u32 rows, vocabulary, kept; u32 tokens[rows + 1];
/// per row four f32 (the first members of forced_row), u16 ids[kept], f32 logits[kept].
inline forced_text read_forced() {
  detail::byte_reader in(detail::golden("model_forced.bin"));
  const auto magic = in.take<char>(8);
  REQUIRE(std::string(magic.begin(), magic.end()) == "LAMGOLD1");
  forced_text text;
  text.file_bytes = in.one<uint64_t>();
  const auto rows = in.one<uint32_t>();
  text.vocabulary = in.one<uint32_t>();
  const auto kept = in.one<uint32_t>();
  text.tokens = in.take<uint32_t>(rows + 1);
  for (uint32_t i = 0; i < rows; ++i) {
    const auto numbers = in.take<float>(4);
    const auto ids = in.take<uint16_t>(kept);
    text.rows.push_back({numbers[0],
                         numbers[1],
                         numbers[2],
                         numbers[3],
                         {ids.begin(), ids.end()},
                         in.take<float>(kept)});
  }
  REQUIRE(in.at_end());
  return text;
}

/// model_logits.bin: "LAMGOLD2", u64 file bytes, u32 rows, vocabulary; u32 positions[rows];
/// f32 logits[rows][vocabulary].
inline whole_logits read_whole() {
  detail::byte_reader in(detail::golden("model_logits.bin"));
  const auto magic = in.take<char>(8);
  REQUIRE(std::string(magic.begin(), magic.end()) == "LAMGOLD2");
  in.one<uint64_t>();
  const auto rows = in.one<uint32_t>(), vocabulary = in.one<uint32_t>();
  whole_logits whole{in.take<uint32_t>(rows), {}};
  for (uint32_t i = 0; i < rows; ++i) whole.rows.push_back(in.take<float>(vocabulary));
  REQUIRE(in.at_end());
  return whole;
}

} // namespace lamella::tests
