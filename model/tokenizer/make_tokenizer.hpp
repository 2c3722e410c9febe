/// The tokeniser of a model file.
#pragma once

#include "model/tokenizer/tokenizer.hpp"

#include <memory>

namespace lamella::model {

/// Makes the tokeniser that the model file describes. Throws file_error where the description is
/// inconsistent or of a kind that is not read; the message lists the kinds that are.
std::unique_ptr<tokenizer> make_tokenizer(const tokenizer_source& source);

} // namespace lamella::model
