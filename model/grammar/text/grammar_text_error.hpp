/// What is wrong with a grammar that a request brings as a text.
#pragma once

#include <stdexcept>

namespace lamella::model {

/// The text is no grammar that can be served; what() names line and column, and what to do.
struct grammar_text_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace lamella::model
