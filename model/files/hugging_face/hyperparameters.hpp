/// What config.json says, by the keys of GGUF.
#pragma once

#include "model/files/hugging_face/hyperparameter.hpp"

namespace lamella::model::hugging_face {

class json_file;

/// Reads config.json. Throws file_error naming the field for a class of models, an activation, a
/// scaling of rotations, or anything else that changes what is computed, which is not known; ranges
/// are for those to check who know the keys.
hyperparameters read_hyperparameters(const json_file& file);

/// What config.json calls what GGUF files call `key`; the key itself where that is not one field.
std::string_view field_of_key(std::string_view key);

/// The ids of "eos_token_id", which is a number, a list of them, or not there.
std::vector<token_id> read_ends(const json_file& file);

} // namespace lamella::model::hugging_face
