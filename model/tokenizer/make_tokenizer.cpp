#include "model/tokenizer/make_tokenizer.hpp"

#include "base/file_error.hpp"
#include "base/printable.hpp"
#include "model/tokenizer/byte_level.hpp"
#include "model/tokenizer/sentencepiece.hpp"

namespace lamella::model {

std::unique_ptr<tokenizer> make_tokenizer(const tokenizer_source& source) {
  // Further kinds are further lines; each lives in a file of its own.
  if (source.kind == "gpt2") return make_byte_level(source);
  if (source.kind == "llama") return make_sentencepiece(source);
  throw file_error(source.file, {}, "tokenizer.ggml.model",
                   (source.kind.empty() ? std::string("is missing")
                                        : "'" + printable(source.kind) + "' is not read")
                       + "; known are gpt2 (byte-level BPE) and llama (SentencePiece BPE)");
}

} // namespace lamella::model
