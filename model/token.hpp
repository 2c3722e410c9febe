/// Token ids.
#pragma once

#include <cstdint>

namespace lamella::model {

/// Index of a token in the vocabulary of the model, 0 <= id < vocabulary size.
using token_id = uint32_t;

} // namespace lamella::model
