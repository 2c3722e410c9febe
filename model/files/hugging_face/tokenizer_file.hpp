/// Tokenisers of Hugging Face directories.
#pragma once

#include "model/files/hugging_face/json_file.hpp"
#include "model/tokenizer/tokenizer_source.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace lamella::model::hugging_face {

/// Bounds on what tokenizer.json may claim. A file that claims more is refused with file_error.
namespace tokenizer_limit {
inline constexpr size_t file_bytes = size_t{64} << 20;
inline constexpr size_t token_bytes = 4096;
inline constexpr size_t added_tokens = 65'536;
} // namespace tokenizer_limit

/// Parses tokenizer.json with these bounds.
json_file open_tokenizer_file(const std::filesystem::path& path);

/// The vocabulary, merges and rules of a tokenizer.json. Byte-level BPE becomes a source of kind
/// "gpt2". BPE with byte fallback becomes one of kind "llama": such files are made from
/// SentencePiece models, whose scores are told by the order of the merges. Throws file_error naming
/// the field for anything that is not known and would change a token.
tokenizer_source read_tokenizer(const json_file& file);

/// Adds what tokenizer_config.json says: which tokens begin and end texts, and whether a prompt
/// begins with the first.
void read_tokenizer_settings(const json_file& file, tokenizer_source& out);

/// The chat template of tokenizer_config.json, a text or a list of named ones, of which "default"
/// is taken; empty if there is none.
std::string read_chat_template(const json_file& file);

} // namespace lamella::model::hugging_face
