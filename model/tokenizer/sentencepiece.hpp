/// SentencePiece vocabularies of the BPE kind: LLaMA-2, Mistral, TinyLlama, Phi-3 and others.
#pragma once

#include "model/tokenizer/tokenizer.hpp"

#include <memory>

namespace lamella::model {

/// The tokeniser of sources of kind "llama". Neighbouring pieces become the piece that they are
/// together, the one of the highest score first, until there is none; characters that no piece has
/// become tokens for their bytes. Pieces write a space as U+2581, which is a space in texts, too:
/// the one character that does not come back.
///
/// Unless the file says no, text that begins, or follows a token that was taken whole, gets a space
/// put before it: words are the same at the beginning as elsewhere. Some files say: the former
/// only. Throws file_error if scores are missing or a byte's token is none.
std::unique_ptr<tokenizer> make_sentencepiece(const tokenizer_source& source);

} // namespace lamella::model
