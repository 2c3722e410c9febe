/// What an answer must be: the integer model evaluated position by position over plain vectors,
/// without slots, shards, channels, batches or retries. Shares the hash with the kernels and
/// nothing with the product but the list of instructions.
#pragma once

#include "tests/simulation/integer_model.hpp"

#include <map>
#include <set>
#include <stdexcept>
#include <string>

namespace lamella::simulation {

/// An answer's tokens; the last one is `end_token` where the model ended it.
struct golden_answer {
  std::vector<uint32_t> tokens;
  std::vector<float> scores; ///< of the prompt's tokens but the first
  std::string text() const {
    std::string out;
    for (auto t : tokens)
      if (t >= first_byte) out += the_model().loaded.text->token_bytes(t);
    return out;
  }
  bool stopped() const { return !tokens.empty() && tokens.back() == end_token; }
};

/// What `held` answers are held to: pairs of a letter up to m and one from n on. Which tokens may
/// come is worked out from their letters.
struct held_answer {
  static constexpr const char* expression = "([a-m][n-z])*";
  bool within_pair = false;

  /// Goes over a text; false where it is none of these.
  bool read(std::string_view text) {
    for (const char c : text) {
      if (within_pair ? c < 'n' || c > 'z' : c < 'a' || c > 'm') return false;
      within_pair = !within_pair;
    }
    return true;
  }
  std::vector<uint32_t> allowed() const {
    const auto& words = *the_model().loaded.text;
    std::vector<uint32_t> result;
    if (!within_pair) result.push_back(end_token);
    for (auto t = first_byte; t < words.vocabulary(); ++t)
      if (held_answer{*this}.read(words.token_bytes(t))) result.push_back(t);
    return result;
  }
};

class golden_run {
public:
  explicit golden_run(const integer_model& x) : model_{x}, program_{*x.loaded.program} {}

  /// The answer to a prompt. `presence`: the presence penalty; 0 is none. `held`: to what
  /// held_answer says.
  golden_answer answer(const std::vector<uint32_t>& prompt, uint32_t max_tokens, uint64_t seed,
                       uint32_t choice, float presence, bool held) {
    past_.clear();
    held_answer pairs;
    golden_answer result;
    uint64_t logits = 0;
    uint32_t position = 0;
    for (auto token : prompt) {
      if (position > 0) result.scores.push_back(score_of(logits, token));
      logits = next(token, position++);
    }
    std::set<uint32_t> seen;
    while (result.tokens.size() < max_tokens) {
      uint64_t edits = 0;
      if (presence != 0)
        for (auto token : seen) edits += edited(token, 1, 0 - presence);
      const auto h = lot(logits, seed, choice, static_cast<uint32_t>(result.tokens.size()), edits);
      const auto token = held ? drawn_of(h, pairs.allowed()) : drawn(h, seed);
      result.tokens.push_back(token);
      if (token == end_token) break;
      pairs.read(the_model().loaded.text->token_bytes(token));
      seen.insert(token);
      logits = next(token, position++);
    }
    return result;
  }

private:
  using lanes = std::vector<float>;

  /// Runs one token at one position through all instructions; a hash of its logits.
  uint64_t next(uint32_t token, uint32_t position) {
    std::vector<lanes> buffers;
    for (auto width : program_.buffer_width) buffers.emplace_back(width);
    const auto& spec = program_.spec;
    lanes query;
    uint64_t logits = 0;
    for (const auto& slice : program_.slices)
      for (const auto& x : slice.instructions) {
        const auto in = [&](size_t i) -> lanes& { return buffers[x.inputs.at(i)]; };
        const auto out = [&]() -> lanes& { return buffers[x.outputs.at(0)]; };
        switch (x.code) {
        case model::opcode::embed:
          for (size_t j = 0; j < out().size(); ++j) out()[j] = lane(mix(token, j));
          break;
        case model::opcode::rms_norm:
        case model::opcode::select:
          out() = in(0);
          break;
        case model::opcode::matmul: {
          const auto row = fold(in(0).data(), in(0).size());
          for (size_t part = 0; part < x.outputs.size(); ++part) {
            const auto weight = mix(row, name_of(model_.weights->matrix(x.weights[part])));
            auto& y = buffers[x.outputs[part]];
            for (size_t n = 0; n < y.size(); ++n) y[n] = lane(mix(weight, n));
          }
          break;
        }
        case model::opcode::rope:
          for (size_t j = 0; j < x.heads * spec.head_dim; ++j)
            out()[j] = lane(mix(mix(number(in(0)[j]), position), j));
          break;
        case model::opcode::silu_mul:
          for (size_t j = 0; j < out().size(); ++j)
            out()[j] = lane(mix(number(in(0)[j]) + 1, number(in(1)[j])));
          break;
        case model::opcode::add:
          for (size_t j = 0; j < out().size(); ++j)
            out()[j] = lane(mix(number(in(0)[j]), number(in(1)[j])));
          break;
        case model::opcode::send_q:
          query = in(0);
          break;
        case model::opcode::send_kv:
          remember(x.layer, in(0), in(1));
          break;
        case model::opcode::recv_attention:
          out() = attention(x.layer, query);
          break;
        case model::opcode::send_context: // it stays in its buffers
        case model::opcode::recv_context:
          break;
        case model::opcode::all_reduce: // programs of several ranks have one
        case model::opcode::add_bias:
        case model::opcode::scale:
          throw std::logic_error("the model is that of one rank, without biases and scales");
        case model::opcode::sample:
          logits = fold(in(0).data(), in(0).size());
          break;
        }
      }
    return logits;
  }

  /// One number for K and V of each head of a position.
  void remember(uint32_t layer, const lanes& keys, const lanes& values) {
    const auto dim = program_.spec.head_dim;
    auto& row = past_[layer].emplace_back();
    for (uint32_t h = 0; h < program_.spec.kv_heads; ++h)
      row.push_back(mix(fold(keys.data() + h * dim, dim), fold(values.data() + h * dim, dim)));
  }

  lanes attention(uint32_t layer, const lanes& query) {
    const auto width = program_.spec.group() * program_.spec.head_dim;
    const auto& rows = past_[layer];
    lanes out;
    for (uint32_t h = 0; h < program_.spec.kv_heads; ++h) {
      const auto q = fold(query.data() + h * width, width);
      uint64_t total = 0;
      for (uint32_t p = 0; p < rows.size(); ++p) total += attended(q, p, rows[p][h]);
      for (uint32_t j = 0; j < width; ++j) out.push_back(lane(mix(total, j)));
    }
    return out;
  }

  const integer_model& model_;
  const model::model_program& program_;
  std::map<uint32_t, std::vector<std::vector<uint64_t>>> past_; ///< by layer, position, head
};

} // namespace lamella::simulation
