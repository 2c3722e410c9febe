/// How config.json tells that contexts are longer than those of the first training.
#pragma once

#include "base/json_reader.hpp"
#include "model/files/hugging_face/hyperparameter.hpp"

namespace lamella::model::hugging_face {

/// Adds the keys and rows of rotations (model/program/rope_rotation.hpp): how fast they are, which
/// elements of a head rotate, and their scaling, "linear", "yarn", "llama3" or "longrope". What
/// configurations leave out is filled in as the library does that writes them. Throws
/// json_field_error.
void read_rope(json_object_reader& config, hyperparameters& out);

} // namespace lamella::model::hugging_face
