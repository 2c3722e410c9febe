/// The common hyperparameters of decoder-only architectures, as stored in files.
#pragma once

#include "model/spec.hpp"

#include <initializer_list>
#include <string>
#include <vector>

namespace lamella::model {

class checkpoint;

/// Shapes, norms, rotation and vocabulary, in ranges and of one mind with the tensors; else throws
/// file_error naming the field. How elements of a head are paired, and which products have a bias,
/// is for the architecture to say.
model_spec read_decoder_spec(const checkpoint& file);

/// Those of some products ("attn_q") that have a bias in the file's first layer.
std::vector<std::string> biased_products(const checkpoint& file,
                                         std::initializer_list<const char*> products);

} // namespace lamella::model
