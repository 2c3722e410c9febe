/// Byte-level byte pair encoding: GPT-2 and its many descendants.
#pragma once

#include "model/tokenizer/tokenizer.hpp"

#include <memory>

namespace lamella::model {

/// The tokeniser of sources of kind "gpt2". Tokens of the file stand for bytes: every byte has a
/// printable character that stands for it, so that vocabularies can be kept as text. Throws
/// file_error if the pre-tokeniser is unknown or a merge rule names a token that is not there.
std::unique_ptr<tokenizer> make_byte_level(const tokenizer_source& source);

} // namespace lamella::model
