/// What a model file says about its tokeniser, whatever the format of the file.
#pragma once

#include "model/token.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lamella::model {

/// The role of a vocabulary entry. `control` entries steer the model (turn markers, end of text);
/// `user_defined` entries are ordinary text that is always taken as one token.
enum class token_kind : uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

/// The largest vocabulary that is read.
inline constexpr uint64_t vocabulary_max = 1u << 20;

/// Description of a tokeniser as the model file has it; make_tokenizer() checks and uses it.
struct tokenizer_source {
  std::filesystem::path file; ///< where it came from, for errors
  std::string kind;           ///< GGUF's tokenizer.ggml.model, e.g. "gpt2"; empty if there is none
  std::string pre;            ///< name of the pre-tokeniser, e.g. "smollm"; may be empty
  std::vector<std::string> tokens;
  std::vector<token_kind> kinds;   ///< as many as tokens
  std::vector<std::string> merges; ///< "left right", best first
  std::vector<float> scores;       ///< as many as tokens, or none
  std::optional<token_id> bos, eos, unknown, padding;
  std::vector<token_id> more_ends; ///< further ids that end an answer (end of turn, of message)
  std::optional<bool> add_bos;     ///< unset where the file does not say
  std::optional<bool> add_space_prefix; ///< before text that begins; unset where it does not say
  bool space_prefix_once = false;       ///< that space: not after tokens that are taken whole
  std::optional<bool> whole_words;  ///< no merging of words that are tokens; unset: as `pre` says
  std::vector<token_id> take_space; ///< white space after these markers is no text (Phi-3)
};

} // namespace lamella::model
